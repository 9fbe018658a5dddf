"""Checkpoints as folders that other libraries load, and back: one name table for each architecture."""
