"""Task, Stage and Recipe: corruption, attention and objectives put together and checked."""
