"""Readers and encoders of labelled files."""
