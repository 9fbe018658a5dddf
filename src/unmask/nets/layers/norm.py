"""Norms of hidden states by kind: layer norm or RMSNorm."""

from __future__ import annotations

from torch import nn

from unmask.config.network import NormKind, TransformerConfig


def build_norm(config: TransformerConfig, width: int) -> nn.Module:
    """The norm of a network, over so many features."""
    if config.norm_kind is NormKind.RMS:
        return nn.RMSNorm(width, config.norm_eps)
    return nn.LayerNorm(width, config.norm_eps)
