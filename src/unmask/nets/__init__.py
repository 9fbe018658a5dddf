"""Batch in, States out: one Transformer made of small parts."""
