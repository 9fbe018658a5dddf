"""Claims of papers, tried again with small networks: arms, seeds, probes and a verdict."""
