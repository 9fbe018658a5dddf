"""Instances as tensors: what crosses from the data half to the network half.

What arrives: an `Instance` in numpy. What leaves: a `Batch` on the device where the network lives.
What never happens here: padding. A batch is flat, and borders say which tokens see each other.

Shapes: T tokens, B rows, P predicted positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from unmask.nets.layout import Borders, ship
from unmask.nets.transformer import Tokens
from unmask.ragged import within
from unmask.records import Amount, Cloze, Fact, Inputs, Instance, Spans


@dataclass(frozen=True, slots=True)
class ClozeAnswers:
    """The true token at each chosen position."""

    positions_P: Tensor
    answers_P: Tensor
    spans: Spans
    """On the host: the selections as drawn."""


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


Answers: TypeAlias = ClozeAnswers | FactAnswers | AmountAnswers


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens, and what is asked about them."""

    tokens: Tokens
    first_B: Tensor
    """Where each row begins: the place of its [CLS]."""
    answers: tuple[Answers, ...]


def collate(instance: Instance, device: torch.device | str = "cpu", apart: bool = False) -> Batch:
    """Tensors of an instance. `apart` keeps the documents of a row from seeing each other."""
    inputs = instance.inputs
    tokens = Tokens(
        ids_T=_tensor(inputs.ids, device),
        position_T=_tensor(_positions(inputs, apart), device),
        segment_T=_tensor(inputs.segment, device),
        borders=Borders.of(torch.from_numpy(_offsets(inputs, apart)), device),
    )
    answers = tuple(_answers(target, device) for target in instance.targets)
    return Batch(tokens, _tensor(inputs.rows[:-1], device), answers)


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


def _answers(target: object, device: torch.device | str) -> Answers:
    match target:
        case Cloze(positions, answers, spans):
            return ClozeAnswers(_tensor(positions, device), _tensor(answers, device), spans)
        case Fact(name, value):
            return FactAnswers(name, _tensor(value, device))
        case Amount(name, value):
            numbers_B = torch.from_numpy(value.astype(np.float32))
            return AmountAnswers(name, numbers_B.to(device, non_blocking=True))
    raise AssertionError(f"no network asks for a {type(target).__name__} yet")


def _tensor(array: np.ndarray, device: torch.device | str) -> Tensor:
    return ship(torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)), device)
