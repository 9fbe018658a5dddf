"""Several tasks on one encoder."""
