"""Instances as tensors: what crosses from the data half to the network half.

What arrives: an `Instance` in numpy. What leaves: a `Batch` on the device where the network lives.
What never happens here: padding. A batch is flat, and borders say which tokens see each other.

Shapes: T tokens, B rows, P predicted positions, C labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from unmask.keys import Key, Lane, uniform
from unmask.nets.layout import Borders, Sight, ship
from unmask.nets.transformer import Tokens
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
    Instance,
    Ints,
    Labels,
    Rewrite,
    Spans,
    Tags,
    Target,
)


@dataclass(frozen=True, slots=True)
class ClozeAnswers:
    """The true token at each chosen position."""

    positions_P: Tensor
    answers_P: Tensor
    spans: Spans
    """On the host: the selections as drawn."""
    rows: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    """On the host: where each row begins, and one more for the end."""
    chance_P: Tensor = field(default_factory=lambda: torch.zeros(0))
    """For whoever has to draw a token there: a number from 0 to 1 for each position, from the address of its row."""


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


@dataclass(frozen=True, slots=True)
class AmountAnswers:
    """The true number of each row."""

    name: str
    value_B: Tensor


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
    """On the host: how many of them each row has."""


@dataclass(frozen=True, slots=True)
class ExtractAnswers:
    """The first and the last token of the answer in each row."""

    name: str
    start_B: Tensor
    end_B: Tensor


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


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens, and what is asked about them."""

    tokens: Tokens
    first_B: Tensor
    """Where each row begins: the place of its [CLS]."""
    answers: tuple[Answers, ...]
    states: tuple[Tensor, ...] = ()
    """What the trunk makes of the tokens, where that is known already."""


def collate(instance: Instance, device: torch.device | str = "cpu", apart: bool = False) -> Batch:
    """Tensors of an instance. `apart` keeps the documents of a row from seeing each other."""
    inputs = instance.inputs
    tokens = Tokens(
        ids_T=_tensor(inputs.ids, device),
        position_T=_tensor(_positions(inputs, apart), device),
        segment_T=_tensor(inputs.segment, device),
        borders=_borders(inputs, apart, device),
    )
    answers = tuple(_answers(target, inputs, device) for target in instance.targets)
    states = tuple(_numbers(state, device) for state in instance.states)
    return Batch(tokens, _tensor(inputs.rows[:-1], device), answers, states)


def _borders(inputs: Inputs, apart: bool, device: torch.device | str) -> Borders:
    """Who sees whom: all of a row, or of a document; or a source itself, and what stands behind it also its past."""
    offsets = torch.from_numpy(_offsets(inputs, apart))
    if not len(inputs.prefix):
        return Borders.of(offsets, device)
    assert not apart, "a source with a text behind it is one document"
    prefix = np.diff(inputs.rows)
    prefix[: len(inputs.prefix)] = inputs.prefix
    return Borders.of(offsets, device, Sight.PREFIX, torch.from_numpy(prefix))


def _offsets(inputs: Inputs, apart: bool) -> np.ndarray:
    if not apart:
        return inputs.rows.astype(np.int32)
    changes = np.flatnonzero(np.diff(inputs.document)) + 1
    return np.unique(np.concatenate([inputs.rows, changes])).astype(np.int32)


def _positions(inputs: Inputs, apart: bool) -> np.ndarray:
    """Positions begin again with every document that is a world of its own."""
    if not apart:
        return inputs.position
    return within(_offsets(inputs, apart).astype(np.int64))


def _answers(target: Target, inputs: Inputs, device: torch.device | str) -> Answers:
    match target:
        case Cloze(positions, answers, spans):
            chance_P = _numbers(_chances(inputs, positions, answers), device)
            return ClozeAnswers(_tensor(positions, device), _tensor(answers, device), spans, inputs.rows, chance_P)
        case Continue(positions, answers):
            return ContinueAnswers(_tensor(positions, device), _tensor(answers, device))
        case Rewrite(ids, rows, position):
            texts = Borders.of(torch.from_numpy(rows), device, Sight.PAST)
            source = Borders.of(torch.from_numpy(inputs.rows[: len(rows)]), device)
            return RewriteAnswers(_tensor(ids, device), _tensor(position, device), texts, source)
        case Fact(name, value):
            return FactAnswers(name, _tensor(value, device))
        case Amount(name, value):
            return AmountAnswers(name, _numbers(value, device))
        case Labels(name, value):
            return LabelAnswers(name, _numbers(value, device))
        case Tags(name, positions, value):
            lengths = np.diff(np.searchsorted(positions, inputs.rows))
            return TagAnswers(name, _tensor(positions, device), _tensor(value, device), tuple(lengths.tolist()))
        case Extract(name, start, end):
            return ExtractAnswers(name, _tensor(start, device), _tensor(end, device))
        case Among(name, groups, value):
            group_B = np.repeat(np.arange(len(groups) - 1), np.diff(groups))
            right = int((value > 0).sum())
            return AmongAnswers(name, _tensor(group_B, device), _numbers(value, device), len(groups) - 1, right)
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


def _tensor(array: np.ndarray, device: torch.device | str) -> Tensor:
    return ship(torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)), device)


def _numbers(array: np.ndarray, device: torch.device | str) -> Tensor:
    return ship(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)), device)
