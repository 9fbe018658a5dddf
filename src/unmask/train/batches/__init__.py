"""Batch sources and prefetching."""
