"""Layers: embeddings, attention, feed-forward, pooling, heads, adapters."""
