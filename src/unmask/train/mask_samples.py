"""Sentences with holes, and what a network would put into them: the lines that a record shows on the way.

What arrives: a learner, a held-out lesson, the tokenizer. What leaves: a few rows with their truth and the best
guesses, as plain data for the record.
What never happens here: a draw, a gradient, or a change of the learner. The same weights say the same.

Shapes: P asked places, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from unmask.config.attention_pattern import AttentionPattern
from unmask.core.records import Cloze, Inputs, InputsAndTargets, Ints
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.nets.backbone import Backbone
from unmask.nets.batch.batch import collate
from unmask.nets.layers.heads import LMHead
from unmask.nets.top_k import most_probable
from unmask.objectives.heads.common import MLMHead
from unmask.objectives.heads.generator import GeneratorModule
from unmask.train.batches.recipe_batches import StepBatch
from unmask.train.evaluate import eval_mode
from unmask.train.multi_head_model import MultiHeadModel


class SampleLine(TypedDict):
    """One row. Places are indices into `shown`, written as text."""

    shown: list[str]
    truth: dict[str, str]
    guesses: dict[str, list[list[str | float]]]
    """Tokens with their probabilities, the likeliest first."""


@dataclass(frozen=True, slots=True)
class MaskFiller:
    """Who fills masks: a network that was shown masks in training, and its head for tokens."""

    network: Backbone
    lm_head: LMHead

    @staticmethod
    def find(model: MultiHeadModel, names: Iterable[str]) -> tuple[MaskFiller, ...]:
        """The one who fills masks for these objectives, or nobody.

        Where a network ahead of the trunk fills them, the trunk has never seen one.
        """
        heads = [model.heads[name] for name in names]
        ahead = [MaskFiller(head.encoder, head.lm_head) for head in heads if isinstance(head, GeneratorModule)]
        usual = [MaskFiller(model.network, head.lm_head) for head in heads if isinstance(head, MLMHead)]
        return tuple((ahead or usual)[:1])


@dataclass(frozen=True, slots=True)
class _Window:
    """A stretch of a row, and the places in it that are asked for, both as places of the batch."""

    begin: int
    end: int
    positions: Ints


def sample_fills(
    model: MultiHeadModel, step_batch: StepBatch, tokenizer: Tokenizer, rows: int = 4, top: int = 3, window: int = 24
) -> list[SampleLine]:
    """What the learner says in the first rows of a lesson, in a window of `around` tokens where each is first asked.

    Nothing comes of a lesson without a cloze, or of a learner that has no head for tokens.
    """
    fillers = MaskFiller.find(model, [one.name for one in step_batch.objectives])
    for filler, instance in product(fillers, step_batch.instances):
        for cloze in instance.targets:
            if isinstance(cloze, Cloze):
                inputs = _first_rows(instance.inputs, rows)
                windows = [one for one in _windows(inputs.rows, cloze.positions, window) if len(one.positions)]
                said = _probabilities(model, filler, inputs, step_batch.attention, windows)
                return list(_lines(windows, inputs, cloze, said, tokenizer, top))
    return []


def _first_rows(inputs: Inputs, rows: int) -> Inputs:
    kept = inputs.rows[: rows + 1]
    end = int(kept[-1])
    return Inputs(inputs.ids[:end], inputs.segment[:end], inputs.document[:end], inputs.position[:end], kept)


def _windows(rows: Ints, positions: Ints, around: int) -> Iterator[_Window]:
    """One window for each row. A third of it stands before the first asked place, if the row has so much."""
    for begin, end in pairwise(rows.tolist()):
        asked = positions[(positions >= begin) & (positions < end)]
        first = int(asked.min(initial=end))
        left = max(begin, min(first - around // 3, end - around))
        right = min(left + around, end)
        yield _Window(left, right, np.sort(asked[(asked >= left) & (asked < right)]))


def _probabilities(
    learner: MultiHeadModel, filler: MaskFiller, inputs: Inputs, attention: AttentionPattern, windows: list[_Window]
) -> Tensor:
    """Probabilities at every asked place, on the host."""
    device = next(learner.parameters()).device
    asked_P = torch.from_numpy(np.concatenate([np.zeros(0, np.int64), *(window.positions for window in windows)]))
    with eval_mode(learner):
        states = filler.network(collate(InputsAndTargets(inputs, ()), device, attention).tokens)
        logits_PV: Tensor = filler.lm_head(states.last_TD[asked_P.to(device)])
    return logits_PV.float().softmax(-1).cpu()


def _lines(
    windows: list[_Window], inputs: Inputs, cloze: Cloze, said_PV: Tensor, tokenizer: Tokenizer, top: int
) -> Iterator[SampleLine]:
    truth = dict(zip(cloze.positions.tolist(), tokenizer.ids_to_tokens(cloze.answers), strict=True))
    guesses = most_probable(said_PV, tokenizer, top)
    for window in windows:
        places = {str(place - window.begin): place for place in window.positions.tolist()}
        yield SampleLine(
            shown=tokenizer.ids_to_tokens(inputs.ids[window.begin : window.end]),
            truth={name: truth[place] for name, place in places.items()},
            guesses={name: [[one.token, round(one.probability, 4)] for one in next(guesses)] for name in places},
        )
