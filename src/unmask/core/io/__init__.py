"""Atomic files, folder locks and a process pool."""
