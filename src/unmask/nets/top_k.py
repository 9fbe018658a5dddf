"""The tokens that a network holds likeliest, with their probabilities.

What arrives: the probability of every id at some places. What leaves: a few guesses for each place, likeliest first.
What never happens here: an id without a name. A vocabulary may have gaps, and a network may keep rows free for later;
both are passed over.

Shapes: P places, V vocabulary, K ids that the tokenizer has a name for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.data.tokenize.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TokenProbability:
    """A token for a place."""

    token: str
    id: int
    probability: float


def most_probable(probability_PV: Tensor, tokenizer: Tokenizer, k: int) -> Iterator[tuple[TokenProbability, ...]]:
    """The `top` likeliest tokens of each place, or as many as there are."""
    named_K = torch.tensor(sorted(tokenizer.pipeline.get_vocab(with_added_tokens=True).values()))
    best = probability_PV[:, named_K].topk(min(k, len(named_K)))
    for chances, places in zip(best.values.tolist(), best.indices, strict=True):
        ids = named_K[places].tolist()
        yield tuple(map(TokenProbability, tokenizer.ids_to_tokens(ids), ids, chances))
