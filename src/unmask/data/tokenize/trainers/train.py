"""Tokenizer training: the protocol of trainable vocabularies, word counts, and `train_tokenizer`.

Equal texts in equal order give a byte-equal `tokenizer.json`: nothing depends on hash order, time or threads. Padding
and truncation are not set.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from tokenizers import Tokenizer as Pipeline
from tokenizers import processors

from unmask.core.errors import RecipeError
from unmask.data.tokenize.special_tokens import SpecialTokens, added_token_entry, sentinel_names
from unmask.data.tokenize.tokenizer import Tokenizer

ModelJson = dict[str, Any]
"""The `model` part of a `tokenizer.json`."""


class TokenizerTrainer(Protocol):
    """A trainable vocabulary. A frozen dataclass that is its own configuration."""

    @property
    def size(self) -> int:
        """The number of entries after training, special tokens and sentinels included."""

    @property
    def num_sentinels(self) -> int:
        """The number of sentinels of removed spans (T5), at the end of the vocabulary."""

    @property
    def special_tokens(self) -> SpecialTokens:
        """The spelling of the special tokens."""

    @property
    def ordered_specials(self) -> tuple[str, ...]:
        """The special tokens in the order of their ids, from 0."""

    def untrained_pipeline(self) -> Pipeline:
        """Normalizer, pre-tokenizer, template and decoder around an empty model."""

    def train(self, texts: Iterable[str], progress: bool) -> ModelJson:
        """The trained model: special tokens first, at most `size - num_sentinels` entries."""


def pair_template(special_tokens: SpecialTokens, specials: tuple[str, ...]) -> processors.TemplateProcessing:
    """The template `[CLS] A [SEP] B [SEP]`, with B in segment 1."""
    ends = [(name, specials.index(name)) for name in (special_tokens.cls, special_tokens.sep)]
    return processors.TemplateProcessing(
        single=f"{special_tokens.cls} $A {special_tokens.sep}",
        pair=f"{special_tokens.cls} $A {special_tokens.sep} $B:1 {special_tokens.sep}:1",
        special_tokens=ends,
    )


def check_vocab_size(trainer: TokenizerTrainer, min_size: int) -> None:
    """Refuse a size below the entries that are required."""
    needed = min_size + trainer.num_sentinels
    if trainer.num_sentinels < 0 or trainer.size < needed:
        raise RecipeError(
            f"{type(trainer).__name__} needs room for at least {needed} entries ({min_size} fixed ones and "
            f"{trainer.num_sentinels} sentinels), but size is {trainer.size}; choose a larger size"
        )


def add_entries(model: ModelJson, entries: Iterable[str], score: float = 0.0) -> int:
    """Append entries to a model's vocabulary; returns the id of the first one."""
    vocab = model["vocab"]
    first = len(vocab)
    for number, entry in enumerate(entries, start=first):
        if isinstance(vocab, dict):
            vocab[entry] = number
        else:
            vocab.append([entry, score])
    return first


MAX_WORDS = 1 << 20


def count_words(
    texts: Iterable[str], split: Callable[[str], Iterable[str]], max_words: int = MAX_WORDS
) -> Counter[str]:
    """The count of each word in the texts. Singletons are discarded beyond `max_words` words."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(split(text))
        if len(counts) > max_words:
            counts = Counter({word: count for word, count in counts.items() if count > 1})
    return counts


def by_frequency(counts: Counter[str]) -> list[str]:
    """The words, most frequent first; ties in the order of their characters."""
    return sorted(counts, key=lambda word: (-counts[word], word))


def as_trainer_text(counts: Counter[str], block: int = 4096) -> Iterator[str]:
    """Each word repeated by its count, in blocks of text: the input of the library's trainers."""
    for word in sorted(counts):
        full, rest = divmod(counts[word], block)
        for times in (*(block for _ in range(full)), rest):
            if times:
                yield " ".join([word] * times)


def train_tokenizer(trainer: TokenizerTrainer, texts: Iterable[str], progress: bool = False) -> Tokenizer:
    """Train a tokenizer. `progress` shows the progress bars of the library."""
    content = json.loads(trainer.untrained_pipeline().to_str())
    content["model"] = trainer.train(texts, progress)
    sentinels = sentinel_names(trainer.num_sentinels)
    first = add_entries(content["model"], sentinels)
    numbered = (*enumerate(trainer.ordered_specials), *enumerate(sentinels, start=first))
    content["added_tokens"] = [added_token_entry(number, name, trainer.special_tokens) for number, name in numbered]
    return Tokenizer.parse(json.dumps(content, ensure_ascii=False))
