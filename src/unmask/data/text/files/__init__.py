"""Readers of file formats: plain text, JSON lines, CSV, CoNLL, Arrow."""
