"""unmask: pre-train, fine-tune, compare and export every member of BERT's family out of one kit of small parts."""

__version__ = "0.1.0"
