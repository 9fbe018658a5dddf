"""Attention backends and the choice among them."""
