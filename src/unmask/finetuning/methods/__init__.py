"""What of a network may move while it is tuned, one file for each policy."""
