"""Shards in, Example out: a global plan that is cheap, and a local build with random access."""
