"""Document in, Document out: reading, cleaning and finding the units of a text, once."""
