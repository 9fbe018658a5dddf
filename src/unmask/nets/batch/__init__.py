"""Batches of packed sequences on the device."""
