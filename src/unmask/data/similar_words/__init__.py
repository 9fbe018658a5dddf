"""Shards → word vectors → which words may stand in for which."""
