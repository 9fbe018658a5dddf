"""Task files in, a network that answers them out: what stands on a trunk, and what of it may move."""
