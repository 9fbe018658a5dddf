"""Metrics by task type."""
