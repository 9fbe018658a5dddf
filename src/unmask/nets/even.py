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

from unmask.nets.answers import (
    IGNORED,
    AmountAnswers,
    Answers,
    ClozeAnswers,
    ExtractAnswers,
    FactAnswers,
    SpanAnswers,
    TagAnswers,
)
from unmask.nets.batch import Batch
from unmask.nets.layout import Borders, Sight, places
from unmask.nets.transformer import Tokens
from unmask.ragged import within

_AT_TOKENS = (ClozeAnswers, TagAnswers)
_EVEN = (*_AT_TOKENS, SpanAnswers, FactAnswers, AmountAnswers, ExtractAnswers)
_TOKENS, _ANSWERS, _SEQUENCES, _LONGEST = 64, 16, 8, 4
"""How fine numbers are: a number is rounded up to so many parts of the next power of two."""
_FEW = 32
"""Numbers are rounded up to a multiple of so many tokens or answers at least: a GPU does not notice fewer."""
_MANY = 1024
"""And of so many tokens at most: a step of 64 thousand would notice more."""


@dataclass(frozen=True, slots=True)
class Room:
    """The shape that a batch is evened out to."""

    tokens: int
    sequences: int
    longest: int
    """The longest sequence that there may be; the padded grid of some kernels is that wide."""
    rows: int
    answers: int
    """Predicted positions."""


def room_for(batches: Sequence[Batch], longest: int) -> Room:
    """A room for all of these, rounded up a little, so that batches that are much alike get the same one."""
    rows = max(len(batch.first_B) for batch in batches) + 1
    tokens = _room_for_tokens(batches, rows)
    found = max(batch.tokens.borders.longest for batch in batches)
    longest = max(min(longest, _rounded(found, _LONGEST, _FEW)), found)
    asked = [len(one.positions_P) for batch in batches for one in batch.answers if isinstance(one, _AT_TOKENS)]
    return Room(
        tokens=tokens,
        sequences=_rounded(max(_sequences(batch, rows, tokens, longest) for batch in batches), _SEQUENCES),
        longest=longest,
        rows=rows,
        answers=_rounded(max(asked, default=0) + 1, _ANSWERS, _FEW),
    )


def _room_for_tokens(batches: Sequence[Batch], rows: int) -> int:
    """As many as the largest batch has, rounded up; a few more, where the rows that are added do not fit in there.

    So batches of full rows, which are round already, do not get a whole part more.
    """
    needed = max(len(batch.tokens.ids_T) + rows - len(batch.first_B) for batch in batches)
    room = _rounded(max(len(batch.tokens.ids_T) for batch in batches), _TOKENS, _FEW, _MANY)
    return room + _rounded(max(needed - room, 0), 1, _FEW, _FEW)


def _sequences(batch: Batch, rows: int, tokens: int, longest: int) -> int:
    """Those of the batch, and those of the tokens that fill it up: one token for each added row but the last."""
    alone = rows - len(batch.first_B) - 1
    return batch.tokens.borders.count + alone - (len(batch.tokens.ids_T) + alone - tokens) // longest


def can_even(batch: Batch) -> bool:
    """Whether everything in a batch is of a kind that can be evened out; tags that are scored by row are not."""
    by_row = any(isinstance(one, TagAnswers) and one.lengths for one in batch.answers)
    return not batch.states and not by_row and all(isinstance(one, _EVEN) for one in batch.answers)


def even(batch: Batch, room: Room) -> Batch:
    """The batch in this room; refuses one that does not fit into it with something to spare."""
    if batch.states:
        raise ValueError("a batch that brings its states along is not evened out")
    tokens, rows = len(batch.tokens.ids_T), len(batch.first_B)
    _need(rows < room.rows, "row", rows, room.rows)
    _need(tokens + room.rows - rows <= room.tokens, "token", tokens + room.rows - rows - 1, room.tokens)
    return Batch(
        tokens=_even_tokens(batch.tokens, room, room.rows - rows),
        first_B=torch.cat([batch.first_B, torch.arange(tokens, tokens + room.rows - rows)]),
        answers=tuple(_even_answers(one, room, tokens) for one in batch.answers),
        real_T=torch.from_numpy(np.arange(room.tokens) < tokens),
        spare=room.tokens - tokens,
    )


def _even_tokens(tokens: Tokens, room: Room, rows: int) -> Tokens:
    """Added tokens are those of number 0; every added row begins a sequence."""
    borders = _even_borders(tokens.borders, room, rows)
    count = len(tokens.ids_T)
    dummy_S1 = borders.offsets_S1[tokens.borders.count :] - count
    position = np.concatenate([tokens.position_T.numpy(), within(dummy_S1.long().numpy())])
    return Tokens(
        ids_T=_filled(tokens.ids_T, room.tokens, 0),
        position_T=torch.from_numpy(position),
        segment_T=_filled(tokens.segment_T, room.tokens, 0),
        borders=borders,
    )


def _even_borders(borders: Borders, room: Room, rows: int) -> Borders:
    """Behind the last sequence one for each added row: a token, for the last one all others; then empty ones."""
    if borders.longest > room.longest:
        raise ValueError(f"the longest sequence has {borders.longest} tokens, and there is room for {room.longest}")
    end = int(borders.offsets_S1[-1])
    last = end + rows - 1
    added = [*range(end + 1, last + 1), *range(last + room.longest, room.tokens, room.longest)]
    offsets = torch.cat([borders.offsets_S1, torch.tensor(added, dtype=torch.int32)])
    _need(len(offsets) <= room.sequences, "sequence", len(offsets), room.sequences)
    offsets_S1 = _filled(offsets, room.sequences + 1, room.tokens)
    prefix = borders.prefix_S
    if borders.sight is Sight.PREFIX:
        prefix = _filled(prefix, room.sequences, 0)
    place_T = places(offsets_S1, room.longest)
    equal = bool((offsets_S1.diff() == room.longest).all())
    return replace(borders, offsets_S1=offsets_S1, place_T=place_T, longest=room.longest, equal=equal, prefix_S=prefix)


def _even_answers(answers: Answers, room: Room, dummy: int) -> Answers:
    """Answers to nothing behind the true ones."""
    match answers:
        case ClozeAnswers():
            return replace(
                answers,
                spare=_spare(answers.positions_P, room.answers),
                positions_P=_filled(answers.positions_P, room.answers, dummy),
                answers_P=_filled(answers.answers_P, room.answers, IGNORED),
                chance_P=_filled(answers.chance_P, room.answers, 0),
            )
        case SpanAnswers():
            return SpanAnswers(
                left_Q=_filled(answers.left_Q, room.answers, 0),
                right_Q=_filled(answers.right_Q, room.answers, 0),
                place_Q=_filled(answers.place_Q, room.answers, 0),
                answer_Q=_filled(answers.answer_Q, room.answers, room.answers - 1),  # the last answer is ignored
                spare=room.answers - len(answers.answer_Q),
            )
        case TagAnswers(lengths=()):
            return replace(
                answers,
                spare=_spare(answers.positions_P, room.answers),
                positions_P=_filled(answers.positions_P, room.answers, dummy),
                value_P=_filled(answers.value_P, room.answers, IGNORED),
            )
        case ExtractAnswers():
            start_B, end_B = (_filled(ends, room.rows, IGNORED) for ends in (answers.start_B, answers.end_B))
            return replace(answers, start_B=start_B, end_B=end_B, spare=room.rows - len(answers.start_B))
        case FactAnswers() | AmountAnswers():
            nothing = IGNORED if isinstance(answers, FactAnswers) else nan
            value_B = _filled(answers.value_B, room.rows, nothing)
            return replace(answers, value_B=value_B, spare=room.rows - len(answers.value_B))
    raise ValueError(f"{type(answers).__name__} cannot be evened out")


def _spare(x_N: Tensor, room: int) -> int:
    """How many answers are added; at least one."""
    _need(len(x_N) < room, "answer", len(x_N), room)
    return room - len(x_N)


def _filled(x_N: Tensor, size: int, value: float) -> Tensor:
    """A tensor of this length, with a value behind its own; by numpy, as `places`."""
    held = x_N.numpy()
    return torch.from_numpy(np.concatenate([held, np.full(size - len(held), value, dtype=held.dtype)]))


def _rounded(number: int, parts: int, least: int = 1, most: int = 1 << 40) -> int:
    """Up to the next of so many parts of the next power of two, or to a multiple of the least or most that is added."""
    part = min(max((1 << (number - 1).bit_length()) // parts, least), most)
    return -(-number // part) * part


def _need(fits: bool, what: str, found: int, room: int) -> None:
    if not fits:
        raise ValueError(f"the batch needs room for {found} {what}s and one to spare, and there is room for {room}")
