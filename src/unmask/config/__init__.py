"""Settings as frozen values: networks, attention patterns, optimizers, pooling, generation. No torch."""
