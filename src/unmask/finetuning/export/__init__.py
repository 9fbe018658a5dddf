"""Fine-tuned models as Hugging Face folders."""
