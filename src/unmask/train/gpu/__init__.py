"""CUDA graphs, side streams and asynchronous read-back."""
