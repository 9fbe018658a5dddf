"""Batches evened out to few different shapes, so that code that was compiled or recorded for one fits the next.

What arrives: a batch on the host, flat and without padding. What leaves: the same batch with something at the end that
stands for nothing: tokens that form sequences of their own, sequences without tokens, rows, and answers that no loss
looks at. What never happens here: a loss, a right answer, a count or a gradient that is not that of the batch as it
came. (Sums are taken over more terms, all of which are 0; a kernel may group them in another way. Dropout draws for
the added tokens too, so its draws are others, of the same law.)

How the added things stay unseen: added tokens see only each other; an added position is that of the first added token,
its answer is `IGNORED`; what judges every token asks `Batch.real_T`; counts are those of the host, without `spare`.

Shapes: T tokens, S sequences, B rows, P predicted positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np
import torch
from torch import Tensor

from unmask.core.ragged import positions_in_rows
from unmask.nets.batch.batch import Batch
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences, padded_indices
from unmask.nets.batch.targets import (
    IGNORE_INDEX,
    BoundaryTargets,
    MaskedTargets,
    RowClassTargets,
    RowValueTargets,
    SpanTargets,
    TargetTensors,
    TokenLabelTargets,
)
from unmask.nets.encoder import TokenInputs

_AT_TOKENS = (MaskedTargets, TokenLabelTargets)
_BUCKETABLE = (*_AT_TOKENS, BoundaryTargets, RowClassTargets, RowValueTargets, SpanTargets)
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
    asked = [len(one.positions_P) for batch in batches for one in batch.targets if isinstance(one, _AT_TOKENS)]
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
    """Whether everything in a batch is of a kind that can be evened out; tags that are scored by row are not."""
    by_row = any(isinstance(one, TokenLabelTargets) and one.lengths for one in batch.targets)
    return not batch.cached_states and not by_row and all(isinstance(one, _BUCKETABLE) for one in batch.targets)


def pad_to_bucket(batch: Batch, bucket: BucketShape) -> Batch:
    """The batch in this room; refuses one that does not fit into it with something to spare."""
    if batch.cached_states:
        raise ValueError("a batch that brings its states along is not evened out")
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
        targets=tuple(_pad_targets(one, bucket, tokens) for one in batch.targets),
        is_real_T=torch.from_numpy(np.arange(bucket.num_tokens) < tokens),
        num_padding=bucket.num_tokens - tokens,
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


def _pad_targets(answers: TargetTensors, room: BucketShape, dummy: int) -> TargetTensors:
    """Answers to nothing behind the true ones."""
    match answers:
        case MaskedTargets():
            return replace(
                answers,
                num_padding=_num_padding(answers.positions_P, room.num_predictions),
                positions_P=_extend(answers.positions_P, room.num_predictions, dummy),
                answers_P=_extend(answers.answers_P, room.num_predictions, IGNORE_INDEX),
                uniform_P=_extend(answers.uniform_P, room.num_predictions, 0),
            )
        case BoundaryTargets():
            return BoundaryTargets(
                left_Q=_extend(answers.left_Q, room.num_predictions, 0),
                right_Q=_extend(answers.right_Q, room.num_predictions, 0),
                position_Q=_extend(answers.position_Q, room.num_predictions, 0),
                target_index_Q=_extend(
                    answers.target_index_Q, room.num_predictions, room.num_predictions - 1
                ),  # the last answer is ignored
                num_padding=room.num_predictions - len(answers.target_index_Q),
            )
        case TokenLabelTargets(lengths=()):
            return replace(
                answers,
                num_padding=_num_padding(answers.positions_P, room.num_predictions),
                positions_P=_extend(answers.positions_P, room.num_predictions, dummy),
                value_P=_extend(answers.value_P, room.num_predictions, IGNORE_INDEX),
            )
        case SpanTargets():
            start_B, end_B = (_extend(ends, room.num_rows, IGNORE_INDEX) for ends in (answers.start_B, answers.end_B))
            return replace(answers, start_B=start_B, end_B=end_B, num_padding=room.num_rows - len(answers.start_B))
        case RowClassTargets() | RowValueTargets():
            nothing = IGNORE_INDEX if isinstance(answers, RowClassTargets) else nan
            value_B = _extend(answers.value_B, room.num_rows, nothing)
            return replace(answers, value_B=value_B, num_padding=room.num_rows - len(answers.value_B))
    raise ValueError(f"{type(answers).__name__} cannot be evened out")


def _num_padding(x_N: Tensor, room: int) -> int:
    """How many answers are added; at least one."""
    _check_fits(len(x_N) < room, "answer", len(x_N), room)
    return room - len(x_N)


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
