"""Bucketing: batches padded to few shapes, so that compiled code and CUDA graphs of one batch fit the next.

At the end of the flat batch come tokens in sequences of their own, empty sequences, rows, and answers that no loss
counts. Loss, correct answers, counts and gradients are those of the batch without padding; sums run over more terms,
all of them 0. Dropout draws for the added tokens too, so its draws differ, under the same distribution.

Padding tokens attend to each other only; a padded position is that of the first padding token, its answer is
`IGNORE_INDEX`; `Batch.is_real_T` marks the text; counts are host numbers without `num_padding`.

Shapes: T tokens, S sequences, B rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from unmask.core.ragged import positions_in_rows
from unmask.core.records import Axis, Fill, TokenLabels
from unmask.nets.batch.batch import Batch, array_fields
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences, padded_indices
from unmask.nets.encoder import TokenInputs

T = TypeVar("T")
_TOKENS, _ANSWERS, _SEQUENCES, _LONGEST = 64, 16, 8, 4
"""How fine numbers are: a number is rounded up to so many parts of the next power of two."""
_FEW = 32
"""Numbers are rounded up to a multiple of so many tokens or answers at least: a GPU does not notice fewer."""
_MANY = 1024
"""And of so many tokens at most: a step of 64 thousand would notice more."""


@dataclass(frozen=True, slots=True)
class BucketShape:
    """The shape that a batch is evened out to."""

    num_tokens: int
    num_sequences: int
    max_seqlen: int
    """The longest sequence that there may be; the padded grid of some kernels is that wide."""
    num_rows: int
    num_predictions: int
    """Predicted positions."""


def bucket_for(batches: Sequence[Batch], max_seqlen: int) -> BucketShape:
    """A room for all of these, rounded up a little, so that batches that are much alike get the same one."""
    rows = max(len(batch.row_starts_B) for batch in batches) + 1
    tokens = _token_bucket(batches, rows)
    found = max(batch.tokens.sequences.max_seqlen for batch in batches)
    max_seqlen = max(min(max_seqlen, _round_up(found, _LONGEST, _FEW)), found)
    asked = [_length(one, Axis.PREDICTION) for batch in batches for one in batch.targets]
    return BucketShape(
        num_tokens=tokens,
        num_sequences=_round_up(max(_num_sequences(batch, rows, tokens, max_seqlen) for batch in batches), _SEQUENCES),
        max_seqlen=max_seqlen,
        num_rows=rows,
        num_predictions=_round_up(max(asked, default=0) + 1, _ANSWERS, _FEW),
    )


def _token_bucket(batches: Sequence[Batch], rows: int) -> int:
    """As many as the largest batch has, rounded up; a few more, where the rows that are added do not fit in there.

    So batches of full rows, which are round already, do not get a whole part more.
    """
    needed = max(len(batch.tokens.ids_T) + rows - len(batch.row_starts_B) for batch in batches)
    room = _round_up(max(len(batch.tokens.ids_T) for batch in batches), _TOKENS, _FEW, _MANY)
    return room + _round_up(max(needed - room, 0), 1, _FEW, _FEW)


def _num_sequences(batch: Batch, rows: int, tokens: int, longest: int) -> int:
    """Those of the batch, and those of the tokens that fill it up: one token for each added row but the last."""
    alone = rows - len(batch.row_starts_B) - 1
    return batch.tokens.sequences.num_sequences + alone - (len(batch.tokens.ids_T) + alone - tokens) // longest


def can_bucket(batch: Batch) -> bool:
    """Whether a batch can be padded: every array of its targets has a fill, and no row is scored as a chain."""
    chains = any(isinstance(one, TokenLabels) and one.lengths for one in batch.targets)
    filled = all("fill" in array.metadata for one in batch.targets for array in array_fields(one))
    dense = batch.tokens.streams or batch.tokens.sequences.coordinates is not None
    return not (batch.cached_states or len(batch.continues_B) or chains or dense) and filled


def pad_to_bucket(batch: Batch, bucket: BucketShape) -> Batch:
    """The batch in this room; refuses one that does not fit into it with something to spare."""
    if batch.cached_states:
        raise ValueError("a batch that carries hidden states cannot be padded to a bucket")
    tokens, rows = len(batch.tokens.ids_T), len(batch.row_starts_B)
    _check_fits(rows < bucket.num_rows, "row", rows, bucket.num_rows)
    _check_fits(
        tokens + bucket.num_rows - rows <= bucket.num_tokens,
        "token",
        tokens + bucket.num_rows - rows - 1,
        bucket.num_tokens,
    )
    return Batch(
        tokens=_pad_tokens(batch.tokens, bucket, bucket.num_rows - rows),
        row_starts_B=torch.cat([batch.row_starts_B, torch.arange(tokens, tokens + bucket.num_rows - rows)]),
        targets=tuple(_pad_target(one, bucket, tokens) for one in batch.targets),
        is_real_T=torch.from_numpy(np.arange(bucket.num_tokens) < tokens),
        num_padding=bucket.num_tokens - tokens,
        row_offsets=batch.row_offsets,
    )


def _pad_tokens(tokens: TokenInputs, room: BucketShape, rows: int) -> TokenInputs:
    """Added tokens are those of number 0; every added row begins a sequence."""
    borders = _pad_sequences(tokens.sequences, room, rows)
    count = len(tokens.ids_T)
    dummy_S1 = borders.cu_seqlens_S1[tokens.sequences.num_sequences :] - count
    position = np.concatenate([tokens.position_T.numpy(), positions_in_rows(dummy_S1.long().numpy())])
    return TokenInputs(
        ids_T=_extend(tokens.ids_T, room.num_tokens, 0),
        position_T=torch.from_numpy(position),
        segment_T=_extend(tokens.segment_T, room.num_tokens, 0),
        sequences=borders,
    )


def _pad_sequences(borders: PackedSequences, room: BucketShape, rows: int) -> PackedSequences:
    """Behind the last sequence one for each added row: a token, for the last one all others; then empty ones."""
    if borders.max_seqlen > room.max_seqlen:
        raise ValueError(
            f"the longest sequence has {borders.max_seqlen} tokens, and there is room for {room.max_seqlen}"
        )
    end = int(borders.cu_seqlens_S1[-1])
    last = end + rows - 1
    added = [*range(end + 1, last + 1), *range(last + room.max_seqlen, room.num_tokens, room.max_seqlen)]
    offsets = torch.cat([borders.cu_seqlens_S1, torch.tensor(added, dtype=torch.int32)])
    _check_fits(len(offsets) <= room.num_sequences, "sequence", len(offsets), room.num_sequences)
    offsets_S1 = _extend(offsets, room.num_sequences + 1, room.num_tokens)
    prefix = borders.prefix_lengths_S
    if borders.mask_kind is MaskKind.PREFIX_LM:
        prefix = _extend(prefix, room.num_sequences, 0)
    place_T = padded_indices(offsets_S1, room.max_seqlen)
    equal = bool((offsets_S1.diff() == room.max_seqlen).all())
    return replace(
        borders,
        cu_seqlens_S1=offsets_S1,
        padded_index_T=place_T,
        max_seqlen=room.max_seqlen,
        is_uniform=equal,
        prefix_lengths_S=prefix,
    )


def _pad_target(target: T, bucket: BucketShape, tokens: int) -> T:
    """The target with answers at its end that no loss counts. `tokens`: the first padding token."""
    sizes = {Axis.PREDICTION: bucket.num_predictions, Axis.ROW: bucket.num_rows, Axis.TOKEN: bucket.num_tokens}
    special = {Fill.FIRST_PADDING_TOKEN: tokens, Fill.LAST_PREDICTION: bucket.num_predictions - 1}
    changes: dict[str, Any] = {}
    for one in array_fields(target):
        if "fill" not in one.metadata:
            raise ValueError(f"{type(target).__name__} cannot be padded: its {one.name} has no fill")
        array, size, fill = getattr(target, one.name), sizes[one.metadata["axis"]], one.metadata["fill"]
        _check_fits(len(array) < size or one.metadata["axis"] is Axis.TOKEN, "answer", len(array), size)
        changes[one.name] = _extend(array, size, special.get(fill, fill))
        changes["num_padding"] = size - len(array)
    made: T = replace(target, **changes)  # type: ignore[type-var]
    return made


def _length(target: object, axis: Axis) -> int:
    """The longest array of a target along an axis."""
    return max(
        (len(getattr(target, one.name)) for one in array_fields(target) if one.metadata.get("axis") is axis), default=0
    )


def _extend(x_N: Tensor, size: int, value: float) -> Tensor:
    """A tensor of this length, with a value behind its own; by numpy, as `places`."""
    held = x_N.numpy()
    return torch.from_numpy(np.concatenate([held, np.full(size - len(held), value, dtype=held.dtype)]))


def _round_up(number: int, parts: int, least: int = 1, most: int = 1 << 40) -> int:
    """Up to the next of so many parts of the next power of two, or to a multiple of the least or most that is added."""
    part = min(max((1 << (number - 1).bit_length()) // parts, least), most)
    return -(-number // part) * part


def _check_fits(fits: bool, what: str, found: int, room: int) -> None:
    if not fits:
        raise ValueError(f"the batch needs room for {found} {what}s and one to spare, and there is room for {room}")
