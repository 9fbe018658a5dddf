"""Using a network: holes are filled, texts become vectors."""
