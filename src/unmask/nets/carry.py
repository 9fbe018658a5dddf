"""A batch as a whole: all of its tensors, and the same batch on another device.

What arrives: a batch on the host. What leaves: the same, field by field, where the network lives; or in the place of
another batch there.
What never happens here: a wait. On a GPU everything crosses from pinned memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from unmask.nets.batch import Batch
from unmask.nets.layout import ship

P = TypeVar("P")


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


def copied(part: P) -> P:
    """A batch, or whatever holds some, with tensors of its own."""
    made: P = _changed(part, torch.clone)
    return made


def fill(into: P, out_of: P) -> None:
    """Put the tensors of one batch in the places of another, which is alike."""
    for place, tensor in zip(tensors_of(into), tensors_of(out_of), strict=True):
        place.copy_(tensor, non_blocking=True)


def alike(part: object) -> Hashable:
    """What two batches have in common if the kernels that were queued for one fit the other."""
    if isinstance(part, Tensor):
        return part.shape, part.dtype
    if isinstance(part, tuple):
        return tuple(alike(one) for one in part)
    if is_dataclass(part):
        names = (field.name for field in fields(part) if not field.metadata.get("host"))
        return type(part), tuple(alike(getattr(part, name)) for name in names)
    return part


def _changed(part: Any, change: Callable[[Tensor], Tensor]) -> Any:  # noqa: ANN401
    """A copy of a frozen part with all its tensors changed; what is on the host for good stays as it is."""
    if isinstance(part, Tensor):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_changed(one, change) for one in part)
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: _changed(getattr(part, field.name), change) for field in fields(part)})
    return part
