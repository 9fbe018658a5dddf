"""The one protocol of vocabularies that can be trained: a spec says what to build, and how to learn it.

What arrives: nothing but the numbers that a user chose. What leaves: an untrained pipeline, then a learned model.
What never happens here: a decision that depends on hash order, time or the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from tokenizers import Tokenizer as Pipeline
from tokenizers import processors

from unmask.errors import RecipeError
from unmask.tokenize.roles import Roles

Model = dict[str, Any]
"""The `model` part of a `tokenizer.json`."""


class Spec(Protocol):
    """A vocabulary to be trained: a frozen dataclass that is its own configuration."""

    @property
    def size(self) -> int:
        """The number of entries when training is done, special tokens and sentinels counted."""

    @property
    def sentinels(self) -> int:
        """How many markers for removed spans (T5) stand at the top of the vocabulary."""

    @property
    def roles(self) -> Roles:
        """How the special tokens are written."""

    @property
    def specials(self) -> tuple[str, ...]:
        """The special tokens in the order of their ids, from 0."""

    def untrained(self) -> Pipeline:
        """Normaliser, pre-tokeniser, template and decoder around an empty model."""

    def learn(self, texts: Iterable[str], progress: bool) -> Model:
        """The model of a trained vocabulary: `specials` first, at most `size - sentinels` entries."""


def pair_template(roles: Roles, specials: tuple[str, ...]) -> processors.TemplateProcessing:
    """`[CLS] A [SEP] B [SEP]`, with B in the second segment."""
    ends = [(name, specials.index(name)) for name in (roles.cls, roles.sep)]
    return processors.TemplateProcessing(
        single=f"{roles.cls} $A {roles.sep}",
        pair=f"{roles.cls} $A {roles.sep} $B:1 {roles.sep}:1",
        special_tokens=ends,
    )


def check_size(spec: Spec, least: int) -> None:
    """Refuse a vocabulary that cannot hold what it must."""
    needed = least + spec.sentinels
    if spec.sentinels < 0 or spec.size < needed:
        raise RecipeError(
            f"{type(spec).__name__} needs room for at least {needed} entries ({least} fixed ones and {spec.sentinels} "
            f"sentinels), but size is {spec.size}; choose a larger size"
        )


def append_entries(model: Model, entries: Iterable[str], score: float = 0.0) -> int:
    """Put entries at the end of a model's vocabulary; the id of the first of them comes back."""
    vocab = model["vocab"]
    first = len(vocab)
    for number, entry in enumerate(entries, start=first):
        if isinstance(vocab, dict):
            vocab[entry] = number
        else:
            vocab.append([entry, score])
    return first
