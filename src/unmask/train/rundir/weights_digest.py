"""A fingerprint of weights: two networks with the same one say the same.

What arrives: tensors by name. What leaves: 32 hex digits.
What never happens here: a device or an order that matters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from torch import Tensor


def digest_of_weights(weights: Mapping[str, Tensor]) -> str:
    """The digest of names and numbers."""
    state = hashlib.blake2b(digest_size=16)
    for name in sorted(weights):
        state.update(name.encode())
        state.update(weights[name].detach().cpu().contiguous().numpy().tobytes())
    return state.hexdigest()
