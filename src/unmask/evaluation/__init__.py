"""Answers and truths in, scores out."""
