"""Thin commands over the parts; `--help` imports nothing heavy."""
