"""The scores that a tuned network gives: numbers, before anyone reads an answer from them.

What arrives: a learner and encoded rows. What leaves: logits as they leave the head, in the order of the rows.
What never happens here: a draw, or a gradient. The same weights say the same about the same rows.

Shapes: N rows, T tokens of all rows, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

import numpy as np
from torch import Tensor

from unmask.nets.batch import Batch, collate
from unmask.nets.transformer import States
from unmask.ragged import ranges
from unmask.records import Amounts, Floats, Ints
from unmask.train.learner import Learner
from unmask.train.trial import still
from unmask.tune.course import JUDGED_AT_ONCE
from unmask.tune.exercise import Exercise


class Speaker(Protocol):
    """A head that can be asked what it would say."""

    def logits(self, states: States, batch: Batch) -> Tensor:
        """A row of numbers for each row, or for each token."""


def row_scores(learner: Learner, name: str, exercise: Exercise) -> Floats:
    """One row of numbers for each row of tokens, from the head of this name."""
    found: list[tuple[Ints, Floats]] = []
    with still(learner):
        for rows, batch in _batches(learner, exercise):
            found.append((rows, _logits(learner, name, batch)))
    scores_NC = np.zeros((len(exercise.rows), found[0][1].shape[1]), dtype=np.float32)
    for rows, some in found:
        scores_NC[rows] = some
    return scores_NC


def token_scores(learner: Learner, name: str, exercise: Exercise) -> Floats:
    """One row of numbers for each token, flat in the order of the rows, from the head of this name."""
    found: list[tuple[Ints, Floats]] = []
    begin, lengths = exercise.rows.rows, exercise.rows.lengths
    with still(learner):
        for rows, batch in _batches(learner, exercise):
            found.append((ranges(begin[rows], lengths[rows]), _logits(learner, name, batch)))
    scores_TC = np.zeros((int(begin[-1]), found[0][1].shape[1]), dtype=np.float32)
    for places, some in found:
        scores_TC[places] = some
    return scores_TC


def shares(scores_NC: Floats) -> Amounts:
    """Logits as probabilities."""
    scores = scores_NC.astype(np.float64)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found: Amounts = weights / weights.sum(axis=-1, keepdims=True)
    return found


def _batches(learner: Learner, exercise: Exercise) -> Iterator[tuple[Ints, Batch]]:
    """All rows, those of like length together."""
    device = next(learner.parameters()).device
    order = np.argsort(exercise.rows.lengths, kind="stable")
    for first in range(0, len(order), JUDGED_AT_ONCE):
        rows = order[first : first + JUDGED_AT_ONCE]
        yield rows, collate(exercise.shown(rows), device)


def _logits(learner: Learner, name: str, batch: Batch) -> Floats:
    head = cast(Speaker, learner.heads[name])
    logits: Floats = head.logits(learner.states(batch), batch).float().cpu().numpy()
    return logits
