"""Metrics of predictions, by task type, and suites of tasks."""
