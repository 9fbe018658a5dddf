"""Loss landscapes of fine-tuned models."""
