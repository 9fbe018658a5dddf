"""The most probable tokens at some positions; ids that the tokenizer has no name for are left out.

Shapes: P positions, V vocabulary, K ids that the tokenizer has a name for.
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
