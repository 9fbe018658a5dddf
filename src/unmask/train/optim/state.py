"""Optimizer state as named tensors for safetensors ("exp_avg/embed.token.weight"), and back.

Learning rates are not saved: they follow from the configuration and the progress of the run.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from unmask.core.errors import InputError


def state_tensors(optimizer: Optimizer, names: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    """The state of the named parameters: the live tensors, not copies."""
    held = {id(parameter) for parameter in optimizer.state}
    kept = {name: optimizer.state[parameter] for name, parameter in names.items() if id(parameter) in held}
    assert len(kept) == len(held), "every trained parameter has a name"
    return {f"{memory}/{name}": tensor for name, state in kept.items() for memory, tensor in state.items()}


@torch.no_grad()
def load_state_tensors(optimizer: Optimizer, names: Mapping[str, nn.Parameter], saved: Mapping[str, Tensor]) -> None:
    """Load saved tensors into a newly built optimizer, which continues bit for bit."""
    live = state_tensors(optimizer, names)
    wrong = [key for key in sorted(live.keys() | saved.keys()) if not _fits(key, live, saved)]
    if wrong:
        raise InputError(
            f"The saved state of the optimizer needs {len(live)} tensors that match this network and optimizer, but "
            f"{len(wrong)} are missing, left over or of another shape or type, the first being '{wrong[0]}'. Resume "
            "with the recipe that the state was saved with."
        )
    for key, tensor in live.items():
        tensor.copy_(saved[key])


def _fits(key: str, live: Mapping[str, Tensor], saved: Mapping[str, Tensor]) -> bool:
    if key not in live or key not in saved:
        return False
    return live[key].shape == saved[key].shape and live[key].dtype == saved[key].dtype
