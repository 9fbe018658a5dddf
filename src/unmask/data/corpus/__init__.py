"""TokenDoc to disk and back: flat memory-mapped arrays with a manifest."""
