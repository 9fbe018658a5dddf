"""Fused kernels and their autograd functions."""
