"""Open a run, an export or a Hugging Face folder; initialize a model from it."""
