"""The kinds of questions that a network can be tuned for: one file each, all with the same protocol."""
