"""One map of weight and config names per model_type."""
