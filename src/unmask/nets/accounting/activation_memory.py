"""Activation memory: about how many bytes per token are saved for the backward pass, by arithmetic.

Heads are left out: they save what they need at predicted positions, a small part of a batch.
"""

from __future__ import annotations

from unmask.config.network import Activation, Norm, NormKind, TransformerConfig

_WIDTHS = 8
"""Tensors of model width in a block: queries, keys, values, attended values, and outputs and states of each branch."""
_FFN_WIDTHS, _GATED_FFN_WIDTHS = 2, 4
"""Tensors of feed-forward width: before and after the activation; with a gate both halves, the gate and the product."""
_BYTES = 2
_PLAIN = 2.5
"""Without fused kernels, sums and norms are float32 and dropout masks are saved: so many times as much."""


def encoder_activation_bytes(config: TransformerConfig, fused: bool) -> int:
    """Bytes per token; `fused`: whether fused kernels run where the network has what they serve."""
    inner = _GATED_FFN_WIDTHS if config.activation is Activation.GEGLU else _FFN_WIDTHS
    numbers = config.depth * (_WIDTHS * config.width + inner * config.ffn_width)
    served = config.norm is Norm.POST and config.norm_kind is NormKind.LAYER and config.bias
    lean = fused and served and config.activation in (Activation.GELU, Activation.GELU_TANH)
    return int(_BYTES * numbers * (1 if lean else _PLAIN))
