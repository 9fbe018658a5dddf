"""Audits: what a task does to a corpus, measured and compared with its rule."""
