"""What a network holds of every token until its gradient is known: bytes on the device, by arithmetic alone.

What arrives: the shape of a trunk. What leaves: about how many bytes a token needs in half precision.
What never happens here: a guess about heads. They hold what is asked for, a small part of a batch.
"""

from __future__ import annotations

from unmask.config.network import Activation, Norm, TransformerConfig

_WIDTHS = 8
"""In each block: queries, keys and values, what was heard, the product and the states after either branch."""
_INNERS, _GATED = 2, 4
"""The inner layer before and after it is bent; with a gate both halves, the bent one and their product."""
_BYTES = 2
_PLAIN = 2.5
"""Without kernels of our own sums and norms are float32 and masks of dropout are kept: so many times as much."""


def activation_bytes(config: TransformerConfig, fused: bool) -> int:
    """Bytes a token. `fused`: whether kernels of our own are taken where there are some (post-norm, no gate)."""
    gated = config.activation is Activation.GEGLU
    numbers = config.depth * (_WIDTHS * config.width + (_GATED if gated else _INNERS) * config.ffn_width)
    lean = fused and config.norm is Norm.POST and config.activation in (Activation.GELU, Activation.GELU_TANH)
    return int(_BYTES * numbers * (1 if lean else _PLAIN))
