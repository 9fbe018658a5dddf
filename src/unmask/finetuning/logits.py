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

from unmask.config.attention_pattern import PREFIX_LM
from unmask.core.ragged import concat_ranges
from unmask.core.records import Doubles, Floats, Ints
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.epoch_batches import EVAL_BATCH_SIZE
from unmask.nets.batch.batch import Batch, collate
from unmask.nets.encoder import HiddenStates
from unmask.train.evaluate import eval_mode
from unmask.train.multi_head_model import MultiHeadModel


class HasLogits(Protocol):
    """A head that can be asked what it would say."""

    def logits(self, states: HiddenStates, batch: Batch) -> Tensor:
        """A row of numbers for each row, or for each token."""


def row_logits(learner: MultiHeadModel, name: str, exercise: EncodedDataset) -> Floats:
    """One row of numbers for each row of tokens, from the head of this name."""
    found: list[tuple[Ints, Floats]] = []
    with eval_mode(learner):
        for rows, batch in _batches(learner, exercise):
            found.append((rows, _logits(learner, name, batch)))
    scores_NC = np.zeros((len(exercise.rows), found[0][1].shape[1]), dtype=np.float32)
    for rows, some in found:
        scores_NC[rows] = some
    return scores_NC


def token_logits(learner: MultiHeadModel, name: str, exercise: EncodedDataset) -> Floats:
    """One row of numbers for each token, flat in the order of the rows, from the head of this name."""
    found: list[tuple[Ints, Floats]] = []
    begin, lengths = exercise.rows.offsets, exercise.rows.lengths
    with eval_mode(learner):
        for rows, batch in _batches(learner, exercise):
            found.append((concat_ranges(begin[rows], lengths[rows]), _logits(learner, name, batch)))
    scores_TC = np.zeros((int(begin[-1]), found[0][1].shape[1]), dtype=np.float32)
    for places, some in found:
        scores_TC[places] = some
    return scores_TC


def softmax(scores_NC: Floats) -> Doubles:
    """Logits as probabilities."""
    scores = scores_NC.astype(np.float64)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found: Doubles = weights / weights.sum(axis=-1, keepdims=True)
    return found


def _batches(learner: MultiHeadModel, exercise: EncodedDataset) -> Iterator[tuple[Ints, Batch]]:
    """All rows, those of like length together."""
    device = next(learner.parameters()).device
    order = np.argsort(exercise.rows.lengths, kind="stable")
    for first in range(0, len(order), EVAL_BATCH_SIZE):
        rows = order[first : first + EVAL_BATCH_SIZE]
        yield rows, collate(exercise.without_targets(rows), device, PREFIX_LM)


def _logits(learner: MultiHeadModel, name: str, batch: Batch) -> Floats:
    head = cast(HasLogits, learner.heads[name])
    logits: Floats = head.logits(learner.states(batch), batch).float().cpu().numpy()
    return logits
