"""The one protocol of vocabularies that can be trained: a spec says what to build, and how to learn it.

What arrives: nothing but the numbers that a user chose. What leaves: an untrained pipeline, then a learned model.
What never happens here: a decision that depends on hash order, time or the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from tokenizers import Tokenizer as Pipeline
from tokenizers import processors

from unmask.core.errors import RecipeError
from unmask.data.tokenize.special_tokens import SpecialTokens

ModelJson = dict[str, Any]
"""The `model` part of a `tokenizer.json`."""


class TokenizerTrainer(Protocol):
    """A vocabulary to be trained: a frozen dataclass that is its own configuration."""

    @property
    def size(self) -> int:
        """The number of entries when training is done, special tokens and sentinels counted."""

    @property
    def num_sentinels(self) -> int:
        """How many markers for removed spans (T5) stand at the top of the vocabulary."""

    @property
    def special_tokens(self) -> SpecialTokens:
        """How the special tokens are written."""

    @property
    def ordered_specials(self) -> tuple[str, ...]:
        """The special tokens in the order of their ids, from 0."""

    def untrained_pipeline(self) -> Pipeline:
        """Normaliser, pre-tokeniser, template and decoder around an empty model."""

    def train(self, texts: Iterable[str], progress: bool) -> ModelJson:
        """The model of a trained vocabulary: `specials` first, at most `size - sentinels` entries."""


def pair_template(special_tokens: SpecialTokens, specials: tuple[str, ...]) -> processors.TemplateProcessing:
    """`[CLS] A [SEP] B [SEP]`, with B in the second segment."""
    ends = [(name, specials.index(name)) for name in (special_tokens.cls, special_tokens.sep)]
    return processors.TemplateProcessing(
        single=f"{special_tokens.cls} $A {special_tokens.sep}",
        pair=f"{special_tokens.cls} $A {special_tokens.sep} $B:1 {special_tokens.sep}:1",
        special_tokens=ends,
    )


def check_vocab_size(trainer: TokenizerTrainer, min_size: int) -> None:
    """Refuse a vocabulary that cannot hold what it must."""
    needed = min_size + trainer.num_sentinels
    if trainer.num_sentinels < 0 or trainer.size < needed:
        raise RecipeError(
            f"{type(trainer).__name__} needs room for at least {needed} entries ({min_size} fixed ones and {trainer.num_sentinels} "
            f"sentinels), but size is {trainer.size}; choose a larger size"
        )


def add_entries(model: ModelJson, entries: Iterable[str], score: float = 0.0) -> int:
    """Put entries at the end of a model's vocabulary; the id of the first of them comes back."""
    vocab = model["vocab"]
    first = len(vocab)
    for number, entry in enumerate(entries, start=first):
        if isinstance(vocab, dict):
            vocab[entry] = number
        else:
            vocab.append([entry, score])
    return first
