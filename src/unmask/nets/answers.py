"""Targets as tensors: what the heads compare their predictions with.

What arrives: a target in numpy, and the inputs that it asks about. What leaves: its answers on the device.
What never happens here: a loss. What a network says and what it should say meet in `objectives/`.

Shapes: T tokens, B rows, P predicted positions, Q tokens of spans that have borders, C labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from unmask.keys import Key, Lane, uniform
from unmask.nets.layout import HOST, Borders, Sight, ship_ints, ship_reals
from unmask.ragged import within
from unmask.records import (
    Among,
    Amount,
    Cloze,
    Continue,
    Extract,
    Fact,
    Ids,
    Inputs,
    Ints,
    Labels,
    Rewrite,
    Spans,
    Tags,
    Target,
)

IGNORED = -100
"""An answer that no loss looks at; torch's own number for it."""


@dataclass(frozen=True, slots=True)
class ClozeAnswers:
    """The true token at each chosen position."""

    positions_P: Tensor
    answers_P: Tensor
    spans: Spans = field(metadata=HOST)
    """On the host: the selections as drawn."""
    rows: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64), metadata=HOST)
    """On the host: where each row begins, and one more for the end."""
    chance_P: Tensor = field(default_factory=lambda: torch.zeros(0))
    """For whoever has to draw a token there: a number from 0 to 1 for each position, from the address of its row."""
    spare: int = field(default=0, metadata=HOST)
    """On the host: how many of the last answers are `IGNORED` and only fill the batch up (`even.py`)."""


@dataclass(frozen=True, slots=True)
class SpanAnswers:
    """For tokens of hidden spans: the two tokens around the span, the place inside it, and which answer it is."""

    left_Q: Tensor
    right_Q: Tensor
    place_Q: Tensor
    answer_Q: Tensor
    """Counted among the answers of the cloze."""
    spare: int = field(default=0, metadata=HOST)
    """On the host: how many of the last ones ask nothing and only fill the batch up (`even.py`)."""


@dataclass(frozen=True, slots=True)
class ReplacedAnswers:
    """Which tokens are not those of the text: true or false. Only at the chosen positions can any be replaced."""

    replaced_T: Tensor
    chosen_P: Tensor


@dataclass(frozen=True, slots=True)
class ContinueAnswers:
    """The true token after each of some positions."""

    positions_P: Tensor
    answers_P: Tensor


@dataclass(frozen=True, slots=True)
class RewriteAnswers:
    """The true text for each row, with its end."""

    ids_P: Tensor
    position_P: Tensor
    borders: Borders
    """Of the texts; a token sees its past only."""
    source: Borders
    """Of the rows that the texts are written for."""


@dataclass(frozen=True, slots=True)
class FactAnswers:
    """The truth about each row."""

    name: str
    value_B: Tensor
    spare: int = field(default=0, metadata=HOST)
    """On the host: how many of the last answers are `IGNORED` and only fill the batch up (`even.py`)."""


@dataclass(frozen=True, slots=True)
class AmountAnswers:
    """The true number of each row; not a number where nothing is asked."""

    name: str
    value_B: Tensor
    spare: int = field(default=0, metadata=HOST)
    """On the host: how many of the last rows are asked nothing and only fill the batch up (`even.py`)."""


@dataclass(frozen=True, slots=True)
class LabelAnswers:
    """Which labels each row has: 1 or 0."""

    name: str
    value_BC: Tensor


@dataclass(frozen=True, slots=True)
class TagAnswers:
    """The true class at some tokens."""

    name: str
    positions_P: Tensor
    value_P: Tensor
    lengths: tuple[int, ...]
    """On the host: how many of them each row has; empty where nobody asks."""
    spare: int = field(default=0, metadata=HOST)
    """On the host: how many of the last answers are `IGNORED` and only fill the batch up (`even.py`)."""


@dataclass(frozen=True, slots=True)
class ExtractAnswers:
    """The first and the last token of the answer in each row."""

    name: str
    start_B: Tensor
    end_B: Tensor
    spare: int = field(default=0, metadata=HOST)
    """On the host: how many of the last answers are `IGNORED` and only fill the batch up (`even.py`)."""


@dataclass(frozen=True, slots=True)
class AmongAnswers:
    """The group of each row, and how right it is."""

    name: str
    group_B: Tensor
    value_B: Tensor
    groups: int
    right: int
    """On the host: how many rows are right at all, of all groups together."""


Answers: TypeAlias = (
    ClozeAnswers
    | SpanAnswers
    | ReplacedAnswers
    | ContinueAnswers
    | RewriteAnswers
    | FactAnswers
    | AmountAnswers
    | LabelAnswers
    | TagAnswers
    | ExtractAnswers
    | AmongAnswers
)


def answers_of(target: Target, inputs: Inputs, device: torch.device | str) -> Answers:
    """The tensors of a target; `inputs` is the text that it asks about."""
    match target:
        case Cloze(positions, answers, spans):
            chance_P = ship_reals(_chances(inputs, positions, answers), device)
            return ClozeAnswers(ship_ints(positions, device), ship_ints(answers, device), spans, inputs.rows, chance_P)
        case Continue(positions, answers):
            return ContinueAnswers(ship_ints(positions, device), ship_ints(answers, device))
        case Rewrite(ids, rows, position):
            texts = Borders.of(torch.from_numpy(rows), device, Sight.PAST)
            source = Borders.of(torch.from_numpy(inputs.rows[: len(rows)]), device)
            return RewriteAnswers(ship_ints(ids, device), ship_ints(position, device), texts, source)
        case Fact(name, value):
            return FactAnswers(name, ship_ints(value, device))
        case Amount(name, value):
            return AmountAnswers(name, ship_reals(value, device))
        case Labels(name, value):
            return LabelAnswers(name, ship_reals(value, device))
        case Tags(name, positions, value):
            lengths = np.diff(np.searchsorted(positions, inputs.rows))
            return TagAnswers(name, ship_ints(positions, device), ship_ints(value, device), tuple(lengths.tolist()))
        case Extract(name, start, end):
            return ExtractAnswers(name, ship_ints(start, device), ship_ints(end, device))
        case Among(name, groups, value):
            group_B = np.repeat(np.arange(len(groups) - 1), np.diff(groups))
            right = int((value > 0).sum())
            return AmongAnswers(name, ship_ints(group_B, device), ship_reals(value, device), len(groups) - 1, right)
    raise AssertionError(f"no network asks for a {type(target).__name__} yet")


def _chances(inputs: Inputs, positions: Ints, answers: Ids) -> np.ndarray:
    """A draw for each chosen position, addressed by the text of its row, by what was chosen there, and by its place.

    So it is the same wherever the row lies: in any micro-batch, in any process, in a trial, after a resume. A row for
    which positions are chosen anew at every visit has new draws then; a frozen copy keeps its draws as its mask.
    """
    places, text = within(inputs.rows), inputs.ids.astype(np.int64)
    text[positions] = answers
    chosen = np.zeros_like(places)
    chosen[positions] = 1
    tokens = Key.of(0, "chance").fold(text).fold(2 * places + chosen)
    of_rows = Key(np.add.reduceat(tokens.state, inputs.rows[:-1]))
    row = np.searchsorted(inputs.rows, positions, side="right") - 1
    return uniform(of_rows.at(Lane.TOKEN, row, places[positions]))
