"""Text for terminals: tables, wrapping, number formats."""
