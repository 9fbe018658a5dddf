"""Corruptions: masking, spans, permutation and denoising; rows in, inputs and targets out."""
