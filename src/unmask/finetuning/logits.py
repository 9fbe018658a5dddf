"""Logits of a fine-tuned model for encoded rows, and Viterbi decoding of tags.

Shapes: N rows, T tokens of all rows, C classes, W words of all sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from unmask.config.attention_pattern import PREFIX_LM
from unmask.core.ragged import concat_ranges
from unmask.core.records import Doubles, Floats, Ints
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.data.tagging.schemes import AllowedTransitions
from unmask.finetuning.epoch_batches import EVAL_BATCH_SIZE
from unmask.nets.batch.batch import Batch, collate
from unmask.nets.encoder import HiddenStates
from unmask.objectives.heads.crf import Emissions, Transitions, viterbi
from unmask.objectives.heads.tagging import CRFHead
from unmask.train.evaluate import eval_mode
from unmask.train.multi_head_model import MultiHeadModel

_VITERBI_BATCH = 64


class HasLogits(Protocol):
    """A head that returns logits."""

    def logits(self, states: HiddenStates, batch: Batch) -> Tensor:
        """Logits of each row, or of each token."""


def row_logits(model: MultiHeadModel, name: str, dataset: EncodedDataset) -> Floats:
    """The logits of each row, from the head of this name."""
    found: list[tuple[Ints, Floats]] = []
    with eval_mode(model):
        for rows, batch in _batches(model, dataset):
            found.append((rows, _logits(model, name, batch)))
    scores_NC = np.zeros((len(dataset.rows), found[0][1].shape[1]), dtype=np.float32)
    for rows, some in found:
        scores_NC[rows] = some
    return scores_NC


def token_logits(model: MultiHeadModel, name: str, dataset: EncodedDataset) -> Floats:
    """The logits of each token, flat in the order of the rows, from the head of this name."""
    found: list[tuple[Ints, Floats]] = []
    begin, lengths = dataset.rows.offsets, dataset.rows.lengths
    with eval_mode(model):
        for rows, batch in _batches(model, dataset):
            found.append((concat_ranges(begin[rows], lengths[rows]), _logits(model, name, batch)))
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


def _batches(model: MultiHeadModel, dataset: EncodedDataset) -> Iterator[tuple[Ints, Batch]]:
    """All rows in batches of similar length."""
    device = next(model.parameters()).device
    order = np.argsort(dataset.rows.lengths, kind="stable")
    for first in range(0, len(order), EVAL_BATCH_SIZE):
        rows = order[first : first + EVAL_BATCH_SIZE]
        yield rows, collate(dataset.without_targets(rows), device, PREFIX_LM)


def _logits(model: MultiHeadModel, name: str, batch: Batch) -> Floats:
    head = cast(HasLogits, model.heads[name])
    logits: Floats = head.logits(model.states(batch), batch).float().cpu().numpy()
    return logits


@torch.no_grad()
def constrained_transitions(head: nn.Module, allowed: AllowedTransitions) -> Transitions:
    """Transition scores that forbid invalid steps: those of a CRF head, else zeros."""
    if isinstance(head, CRFHead):
        return Transitions(*(score.cpu() for score in head.allowed_transitions.tensors))
    return Transitions.zeros(len(allowed.start)).masked(*map(torch.from_numpy, allowed))


def viterbi_tags(scores_WC: Floats, begin: Ints, steps: Transitions) -> Ints:
    """The best tag sequence of each sentence `begin[i]:begin[i + 1]`, by Viterbi decoding."""
    lengths = np.diff(begin)
    order = np.argsort(lengths, kind="stable")  # sentences of similar length together
    tags_W = np.zeros(len(scores_WC), dtype=np.int64)
    for first in range(0, len(order), _VITERBI_BATCH):
        some = order[first : first + _VITERBI_BATCH]
        words = concat_ranges(begin[some], lengths[some])
        chains = Emissions.from_flat(torch.from_numpy(scores_WC[words]), tuple(lengths[some].tolist()))
        tags_W[words] = viterbi(chains, steps).numpy()
    return tags_W
