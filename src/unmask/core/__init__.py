"""Records, random numbers, serialization and atomic files. Everything else is built on it."""
