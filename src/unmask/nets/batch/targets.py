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

from unmask.core.ragged import positions_in_rows
from unmask.core.records import (
    AnswerSpan,
    CandidateGroups,
    Cloze,
    ContinuationTarget,
    DecoderTarget,
    Ids,
    Inputs,
    Ints,
    RowClass,
    RowMultiLabel,
    RowValue,
    Spans,
    Target,
    TokenLabels,
)
from unmask.core.rng import DrawPurpose, Key, uniform
from unmask.nets.batch.packed_sequences import HOST_ONLY, MaskKind, PackedSequences, floats_to_device, ints_to_device

IGNORE_INDEX = -100
"""An answer that no loss looks at; torch's own number for it."""


@dataclass(frozen=True, slots=True)
class MaskedTargets:
    """The true token at each chosen position."""

    positions_P: Tensor
    answers_P: Tensor
    spans: Spans = field(metadata=HOST_ONLY)
    """On the host: the selections as drawn."""
    rows: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64), metadata=HOST_ONLY)
    """On the host: where each row begins, and one more for the end."""
    uniform_P: Tensor = field(default_factory=lambda: torch.zeros(0))
    """For whoever has to draw a token there: a number from 0 to 1 for each position, from the address of its row."""
    num_padding: int = field(default=0, metadata=HOST_ONLY)
    """On the host: how many of the last answers are `IGNORED` and only fill the batch up (`bucketing.py`)."""


@dataclass(frozen=True, slots=True)
class BoundaryTargets:
    """For tokens of hidden spans: the two tokens around the span, the place inside it, and which answer it is."""

    left_Q: Tensor
    right_Q: Tensor
    position_Q: Tensor
    target_index_Q: Tensor
    """Counted among the answers of the cloze."""
    num_padding: int = field(default=0, metadata=HOST_ONLY)
    """On the host: how many of the last ones ask nothing and only fill the batch up (`bucketing.py`)."""


@dataclass(frozen=True, slots=True)
class ReplacementTargets:
    """Which tokens are not those of the text: true or false. Only at the chosen positions can any be replaced."""

    replaced_T: Tensor
    chosen_P: Tensor


@dataclass(frozen=True, slots=True)
class ContinuationTargets:
    """The true token after each of some positions."""

    positions_P: Tensor
    answers_P: Tensor


@dataclass(frozen=True, slots=True)
class DecoderTargets:
    """The true text for each row, with its end."""

    ids_P: Tensor
    position_P: Tensor
    sequences: PackedSequences
    """Of the texts; a token sees its past only."""
    source_sequences: PackedSequences
    """Of the rows that the texts are written for."""


@dataclass(frozen=True, slots=True)
class RowClassTargets:
    """The truth about each row."""

    name: str
    value_B: Tensor
    num_padding: int = field(default=0, metadata=HOST_ONLY)
    """On the host: how many of the last answers are `IGNORED` and only fill the batch up (`bucketing.py`)."""


@dataclass(frozen=True, slots=True)
class RowValueTargets:
    """The true number of each row; not a number where nothing is asked."""

    name: str
    value_B: Tensor
    num_padding: int = field(default=0, metadata=HOST_ONLY)
    """On the host: how many of the last rows are asked nothing and only fill the batch up (`bucketing.py`)."""


@dataclass(frozen=True, slots=True)
class MultiLabelTargets:
    """Which labels each row has: 1 or 0."""

    name: str
    value_BC: Tensor


@dataclass(frozen=True, slots=True)
class TokenLabelTargets:
    """The true class at some tokens."""

    name: str
    positions_P: Tensor
    value_P: Tensor
    lengths: tuple[int, ...]
    """On the host: how many of them each row has; empty where nobody asks."""
    num_padding: int = field(default=0, metadata=HOST_ONLY)
    """On the host: how many of the last answers are `IGNORED` and only fill the batch up (`bucketing.py`)."""


@dataclass(frozen=True, slots=True)
class SpanTargets:
    """The first and the last token of the answer in each row."""

    name: str
    start_B: Tensor
    end_B: Tensor
    num_padding: int = field(default=0, metadata=HOST_ONLY)
    """On the host: how many of the last answers are `IGNORED` and only fill the batch up (`bucketing.py`)."""


@dataclass(frozen=True, slots=True)
class CandidateTargets:
    """The group of each row, and how right it is."""

    name: str
    group_B: Tensor
    value_B: Tensor
    num_groups: int
    num_relevant: int
    """On the host: how many rows are right at all, of all groups together."""


TargetTensors: TypeAlias = (
    MaskedTargets
    | BoundaryTargets
    | ReplacementTargets
    | ContinuationTargets
    | DecoderTargets
    | RowClassTargets
    | RowValueTargets
    | MultiLabelTargets
    | TokenLabelTargets
    | SpanTargets
    | CandidateTargets
)


def targets_to_tensors(target: Target, inputs: Inputs, device: torch.device | str) -> TargetTensors:
    """The tensors of a target; `inputs` is the text that it asks about."""
    match target:
        case Cloze(positions, answers, spans):
            chance_P = floats_to_device(_uniforms(inputs, positions, answers), device)
            return MaskedTargets(
                ints_to_device(positions, device), ints_to_device(answers, device), spans, inputs.rows, chance_P
            )
        case ContinuationTarget(positions, answers):
            return ContinuationTargets(ints_to_device(positions, device), ints_to_device(answers, device))
        case DecoderTarget(ids, rows, position):
            texts = PackedSequences.of(torch.from_numpy(rows), device, MaskKind.CAUSAL)
            source = PackedSequences.of(torch.from_numpy(inputs.rows[: len(rows)]), device)
            return DecoderTargets(ints_to_device(ids, device), ints_to_device(position, device), texts, source)
        case RowClass(name, value):
            return RowClassTargets(name, ints_to_device(value, device))
        case RowValue(name, value):
            return RowValueTargets(name, floats_to_device(value, device))
        case RowMultiLabel(name, value):
            return MultiLabelTargets(name, floats_to_device(value, device))
        case TokenLabels(name, positions, value):
            lengths = np.diff(np.searchsorted(positions, inputs.rows))
            return TokenLabelTargets(
                name, ints_to_device(positions, device), ints_to_device(value, device), tuple(lengths.tolist())
            )
        case AnswerSpan(name, start, end):
            return SpanTargets(name, ints_to_device(start, device), ints_to_device(end, device))
        case CandidateGroups(name, groups, value):
            group_B = np.repeat(np.arange(len(groups) - 1), np.diff(groups))
            right = int((value > 0).sum())
            return CandidateTargets(
                name, ints_to_device(group_B, device), floats_to_device(value, device), len(groups) - 1, right
            )
    raise AssertionError(f"no network asks for a {type(target).__name__} yet")


def _uniforms(inputs: Inputs, positions: Ints, answers: Ids) -> np.ndarray:
    """A draw for each chosen position, addressed by the text of its row, by what was chosen there, and by its place.

    So it is the same wherever the row lies: in any micro-batch, in any process, in a trial, after a resume. A row for
    which positions are chosen anew at every visit has new draws then; a frozen copy keeps its draws as its mask.
    """
    places, text = positions_in_rows(inputs.rows), inputs.ids.astype(np.int64)
    text[positions] = answers
    chosen = np.zeros_like(places)
    chosen[positions] = 1
    tokens = Key.of(0, "chance").fold_in(text).fold_in(2 * places + chosen)
    of_rows = Key(np.add.reduceat(tokens.state, inputs.rows[:-1]))
    row = np.searchsorted(inputs.rows, positions, side="right") - 1
    return uniform(of_rows.bits_at(DrawPurpose.TOKEN, row, places[positions]))
