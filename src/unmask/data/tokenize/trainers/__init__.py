"""Tokenizers that are trained: WordPiece, byte-level BPE, Unigram, characters."""
