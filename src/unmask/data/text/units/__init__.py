"""Annotators: sentences, words, phrases and entities of a text."""
