"""Hugging Face folders, both ways, with a parity check."""
