"""Parameters, FLOPs and activation memory by arithmetic."""
