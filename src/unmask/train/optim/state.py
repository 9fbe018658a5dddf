"""What an optimizer remembers, as named tensors for a file, and back.

What arrives: a built optimizer and the names of its parameters.
What leaves: tensors named "exp_avg/embed.token.weight".
What never happens here: anything but tensors, so the file is safetensors and no code runs when it is read.
Rates are not kept: they follow from the spec and from how far the run has come.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from unmask.core.errors import InputError


def state_tensors(optimizer: Optimizer, names: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    """Everything the optimizer remembers of the named parameters. These are the live tensors, not copies."""
    held = {id(parameter) for parameter in optimizer.state}
    kept = {name: optimizer.state[parameter] for name, parameter in names.items() if id(parameter) in held}
    assert len(kept) == len(held), "every trained parameter has a name"
    return {f"{memory}/{name}": tensor for name, state in kept.items() for memory, tensor in state.items()}


@torch.no_grad()
def load_state_tensors(optimizer: Optimizer, names: Mapping[str, nn.Parameter], saved: Mapping[str, Tensor]) -> None:
    """Put saved tensors into a freshly built optimizer, which then goes on bit for bit as the saved one would have."""
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
