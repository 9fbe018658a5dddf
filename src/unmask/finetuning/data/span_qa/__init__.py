"""Extractive question answering: files, windows, decoding."""
