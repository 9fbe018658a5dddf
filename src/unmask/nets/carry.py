"""A batch as a whole: all of its tensors, and the same batch on another device.

What arrives: a batch on the host. What leaves: the same, field by field, where the network lives.
What never happens here: a wait. On a GPU everything crosses from pinned memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from unmask.nets.batch import Batch
from unmask.nets.layout import ship


def on_device(batch: Batch, device: torch.device) -> Batch:
    """The batch on a device."""
    if device.type == "cpu":
        return batch
    moved: Batch = _changed(batch, lambda tensor: ship(tensor, device) if len(tensor) else tensor.to(device))
    return moved


def tensors_of(part: object) -> Iterator[Tensor]:
    """Every tensor of a batch, or of a part of it."""
    if isinstance(part, Tensor):
        yield part
    elif isinstance(part, tuple):
        yield from (tensor for one in part for tensor in tensors_of(one))
    elif is_dataclass(part):
        yield from (tensor for field in fields(part) for tensor in tensors_of(getattr(part, field.name)))


def _changed(part: Any, change: Callable[[Tensor], Tensor]) -> Any:  # noqa: ANN401
    """A copy of a frozen part with all its tensors changed; what is on the host for good stays as it is."""
    if isinstance(part, Tensor):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_changed(one, change) for one in part)
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: _changed(getattr(part, field.name), change) for field in fields(part)})
    return part
