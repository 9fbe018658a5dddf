"""Instances as tensors: what crosses from the data half to the network half.

What arrives: an `Instance` in numpy. What leaves: a `Batch` on the device where the network lives.
What never happens here: padding. A batch is flat, and borders say which tokens see each other.

Shapes: T tokens, B rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from unmask.nets.answers import Answers, ClozeAnswers, answers_of
from unmask.nets.layout import HOST, Borders, Sight, ship_ints, ship_reals
from unmask.nets.transformer import Tokens
from unmask.ragged import within
from unmask.records import Inputs, Instance


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens, and what is asked about them."""

    tokens: Tokens
    first_B: Tensor
    """Where each row begins: the place of its [CLS]."""
    answers: tuple[Answers, ...]
    states: tuple[Tensor, ...] = ()
    """What the trunk makes of the tokens, where that is known already."""
    real_T: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))
    """Which tokens are of the text, where others only fill the batch up (`even.py`); empty where all are."""
    spare: int = field(default=0, metadata=HOST)
    """On the host: how many of the last tokens only fill the batch up."""


def collate(instance: Instance, device: torch.device | str = "cpu", apart: bool = False) -> Batch:
    """Tensors of an instance. `apart` keeps the documents of a row from seeing each other."""
    inputs = instance.inputs
    tokens = Tokens(
        ids_T=ship_ints(inputs.ids, device),
        position_T=ship_ints(_positions(inputs, apart), device),
        segment_T=ship_ints(inputs.segment, device),
        borders=_borders(inputs, apart, device),
    )
    answers = tuple(answers_of(target, inputs, device) for target in instance.targets)
    states = tuple(ship_reals(state, device) for state in instance.states)
    return Batch(tokens, ship_ints(inputs.rows[:-1], device), answers, states)


def cloze_of(batch: Batch) -> ClozeAnswers:
    """The one cloze that a batch asks."""
    (cloze,) = (answers for answers in batch.answers if isinstance(answers, ClozeAnswers))
    return cloze


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
