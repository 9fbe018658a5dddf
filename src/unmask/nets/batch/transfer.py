"""Batches as trees of tensors: copy to a device in one transfer, clone, compare by shape; no synchronization."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import accumulate, groupby
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from unmask.nets.batch.batch import Batch

P = TypeVar("P")
_ROUND = 64
"""Tensors of a piece begin at multiples of so many bytes, which is round enough for every kernel."""


def batch_to_device(batch: Batch, device: torch.device) -> Batch:
    """The batch on a device."""
    return batch if device.type == "cpu" else to_device_packed(batch, device)


def to_device_packed(batch: P, device: torch.device) -> P:
    """The batch on a device, in one buffer: a host takes as long for one copy as for another."""
    tensors = list(iter_tensors(batch))
    starts = _byte_offsets(tensors)
    piece = torch.empty(starts[-1], dtype=torch.uint8, pin_memory=device.type == "cuda")
    host = piece.numpy()  # copies in this thread; torch would use several and wait for the slowest
    for tensor, start in zip(tensors, starts, strict=False):
        host[start : start + tensor.nbytes] = tensor.reshape(-1).view(torch.uint8).numpy()
    # Only pinned memory stays allocated until an asynchronous copy is over.
    return _place_in_buffer(batch, piece.to(device, non_blocking=device.type == "cuda"))


def iter_tensors(part: object) -> Iterator[Tensor]:
    """Every tensor of a batch, or of a part of it."""
    if isinstance(part, Tensor):
        yield part
    for one in _children(part):
        yield from iter_tensors(one)


def storages(part: object) -> list[Tensor]:
    """Every storage of the tensors of a batch, once."""
    return list({piece.data_ptr(): piece for piece in map(_storage_bytes, iter_tensors(part))}.values())


def clone(part: P) -> P:
    """A deep copy of a batch; tensors that share a buffer share one again."""
    piece = _packed_buffer(list(iter_tensors(part)))
    if piece is not None:
        return _place_in_buffer(part, piece.clone())
    made: Any = part.clone() if isinstance(part, Tensor) else _map_children(part, clone)
    return cast(P, made)


def copy_into(target: P, source: P) -> None:
    """Copy the tensors of one batch into those of another of the same shapes; a shared buffer in one copy."""
    both = zip(iter_tensors(target), iter_tensors(source), strict=True)
    for _, some in groupby(both, lambda pair: [one.untyped_storage().data_ptr() for one in pair]):
        places, news = zip(*some, strict=True)
        piece, new = _packed_buffer(places), _packed_buffer(news)
        if piece is not None and new is not None:
            places, news = (piece,), (new,)
        for place, one in zip(places, news, strict=True):
            place.copy_(one, non_blocking=True)


def shape_key(part: object) -> Hashable:
    """A key that two batches share if the kernels captured for one fit the other."""
    if isinstance(part, Tensor):
        return part.shape, part.dtype
    if isinstance(part, tuple):
        return tuple(shape_key(one) for one in part)
    if is_dataclass(part):
        names = (field.name for field in fields(part) if not field.metadata.get("host"))
        return type(part), tuple(shape_key(getattr(part, name)) for name in names)
    return part


def _children(part: object) -> tuple[Any, ...]:
    """The fields or elements of a part; empty for any other object."""
    if isinstance(part, tuple):
        return part
    return tuple(getattr(part, field.name) for field in fields(part)) if is_dataclass(part) else ()


def _map_children(part: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    """A part with its fields or elements changed; any other object as it is."""
    if isinstance(part, tuple):
        return tuple(map(change, part))
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: change(getattr(part, field.name)) for field in fields(part)})
    return part


def _place_in_buffer(part: P, piece: Tensor) -> P:
    """The part with its tensors as views of a buffer that holds their values."""
    starts = iter(_byte_offsets(list(iter_tensors(part))))

    def lay(one: Any) -> Any:  # noqa: ANN401
        return _view(piece, next(starts), one) if isinstance(one, Tensor) else _map_children(one, lay)

    made: P = lay(part)
    return made


def _packed_buffer(tensors: Sequence[Tensor]) -> Tensor | None:
    """The buffer that holds exactly these tensors in order, if there is one."""
    if len(tensors) < 2:
        return None
    base, starts = tensors[0].untyped_storage(), _byte_offsets(tensors)
    for tensor, start in zip(tensors, starts, strict=False):
        if not tensor.is_contiguous() or (tensor.nbytes and tensor.data_ptr() != base.data_ptr() + start):
            return None
    return _storage_bytes(tensors[0]) if base.nbytes() == starts[-1] else None


def _byte_offsets(tensors: Sequence[Tensor]) -> list[int]:
    """The byte offset of each tensor in a shared buffer, and the end."""
    return [0, *accumulate(-(-tensor.nbytes // _ROUND) * _ROUND for tensor in tensors)]


def _storage_bytes(tensor: Tensor) -> Tensor:
    """All bytes of the storage of a tensor."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def _view(piece: Tensor, start: int, like: Tensor) -> Tensor:
    """A range of a buffer, as a tensor of this type and shape."""
    return piece[start : start + like.nbytes].view(like.dtype).view(like.shape)
