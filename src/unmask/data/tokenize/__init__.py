"""Document in, TokenDoc out: tokenizers, and the one place where character marks become token spans."""
