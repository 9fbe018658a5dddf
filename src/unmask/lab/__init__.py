"""Experiments made of the parts: members compared on one corpus, with one budget."""
