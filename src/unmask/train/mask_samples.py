"""Sample mask predictions for the run record: a few held-out rows with their truth and the best guesses.

Shapes: P masked positions, V vocabulary.
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
    """One row. Positions are indices into `shown`, as strings."""

    shown: list[str]
    truth: dict[str, str]
    guesses: dict[str, list[list[str | float]]]
    """Tokens with their probabilities, the likeliest first."""


@dataclass(frozen=True, slots=True)
class MaskFiller:
    """A network that was trained on masks, with its LM head."""

    network: Backbone
    lm_head: LMHead

    @staticmethod
    def find(model: MultiHeadModel, names: Iterable[str]) -> tuple[MaskFiller, ...]:
        """The network that fills masks for these objectives, if there is one.

        With a generator it is the generator: the encoder is not trained on masks.
        """
        heads = [model.heads[name] for name in names]
        ahead = [MaskFiller(head.encoder, head.lm_head) for head in heads if isinstance(head, GeneratorModule)]
        usual = [MaskFiller(model.network, head.lm_head) for head in heads if isinstance(head, MLMHead)]
        return tuple((ahead or usual)[:1])


@dataclass(frozen=True, slots=True)
class _Window:
    """A window of a row and the masked positions in it, as positions of the batch."""

    begin: int
    end: int
    positions: Ints


def sample_fills(
    model: MultiHeadModel, step_batch: StepBatch, tokenizer: Tokenizer, rows: int = 4, top: int = 3, window: int = 24
) -> list[SampleLine]:
    """Predictions in the first rows of a batch, in a window of `window` tokens around the first mask of each.

    Empty for a batch without masked tokens, or a model without an LM head.
    """
    fillers = MaskFiller.find(model, [one.name for one in step_batch.objectives])
    for filler, instance in product(fillers, step_batch.instances):
        for cloze in instance.targets:
            if isinstance(cloze, Cloze):
                inputs = _first_rows(instance.inputs, rows)
                windows = [one for one in _windows(inputs.rows, cloze.positions, window) if len(one.positions)]
                probabilities = _probabilities(model, filler, inputs, step_batch.attention, windows)
                return list(_lines(windows, inputs, cloze, probabilities, tokenizer, top))
    return []


def _first_rows(inputs: Inputs, rows: int) -> Inputs:
    kept = inputs.rows[: rows + 1]
    end = int(kept[-1])
    return Inputs(inputs.ids[:end], inputs.segment[:end], inputs.document[:end], inputs.position[:end], kept)


def _windows(rows: Ints, positions: Ints, around: int) -> Iterator[_Window]:
    """One window for each row. A third of it is before the first masked position, if the row is long enough."""
    for begin, end in pairwise(rows.tolist()):
        masked = positions[(positions >= begin) & (positions < end)]
        first = int(masked.min(initial=end))
        left = max(begin, min(first - around // 3, end - around))
        right = min(left + around, end)
        yield _Window(left, right, np.sort(masked[(masked >= left) & (masked < right)]))


def _probabilities(
    model: MultiHeadModel, filler: MaskFiller, inputs: Inputs, attention: AttentionPattern, windows: list[_Window]
) -> Tensor:
    """Probabilities at every masked position, on the host."""
    device = next(model.parameters()).device
    positions_P = torch.from_numpy(np.concatenate([np.zeros(0, np.int64), *(window.positions for window in windows)]))
    with eval_mode(model):
        states = filler.network(collate(InputsAndTargets(inputs, ()), device, attention).tokens)
        logits_PV: Tensor = filler.lm_head(states.last_TD[positions_P.to(device)])
    return logits_PV.float().softmax(-1).cpu()


def _lines(
    windows: list[_Window], inputs: Inputs, cloze: Cloze, probabilities_PV: Tensor, tokenizer: Tokenizer, top: int
) -> Iterator[SampleLine]:
    truth = dict(zip(cloze.positions.tolist(), tokenizer.ids_to_tokens(cloze.answers), strict=True))
    guesses = most_probable(probabilities_PV, tokenizer, top)
    for window in windows:
        places = {str(place - window.begin): place for place in window.positions.tolist()}
        yield SampleLine(
            shown=tokenizer.ids_to_tokens(inputs.ids[window.begin : window.end]),
            truth={name: truth[place] for name, place in places.items()},
            guesses={name: [[one.token, round(one.probability, 4)] for one in next(guesses)] for name in places},
        )
