"""A fingerprint of weights as 32 hex digits, independent of device and order."""

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
