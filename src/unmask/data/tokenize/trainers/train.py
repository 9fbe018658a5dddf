"""Texts in, trained tokenizer out.

What arrives: a spec and a stream of texts, read once.
What leaves: a tokenizer whose file is the same, byte for byte, whenever the same texts come in the same order.
What never happens here: padding or truncation. A trained file leaves both to whoever builds rows.
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


MAX_WORDS = 1 << 20


def count_words(
    texts: Iterable[str], split: Callable[[str], Iterable[str]], max_words: int = MAX_WORDS
) -> Counter[str]:
    """How often `cut` finds each word in the texts."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(split(text))
        if len(counts) > max_words:
            counts = Counter({word: count for word, count in counts.items() if count > 1})
    return counts


def by_frequency(counts: Counter[str]) -> list[str]:
    """The words, most frequent first; ties in the order of their characters, so that no hash order shows."""
    return sorted(counts, key=lambda word: (-counts[word], word))


def as_trainer_text(counts: Counter[str], block: int = 4096) -> Iterator[str]:
    """Each word as often as it was counted, joined by spaces in pieces: how counts are handed to a trainer."""
    for word in sorted(counts):
        full, rest = divmod(counts[word], block)
        for times in (*(block for _ in range(full)), rest):
            if times:
                yield " ".join([word] * times)


def train_tokenizer(trainer: TokenizerTrainer, texts: Iterable[str], progress: bool = False) -> Tokenizer:
    """Learn a vocabulary. `progress` shows the library's own bars where it has some."""
    content = json.loads(trainer.untrained_pipeline().to_str())
    content["model"] = trainer.train(texts, progress)
    sentinels = sentinel_names(trainer.num_sentinels)
    first = add_entries(content["model"], sentinels)
    numbered = (*enumerate(trainer.ordered_specials), *enumerate(sentinels, start=first))
    content["added_tokens"] = [added_token_entry(number, name, trainer.special_tokens) for number, name in numbered]
    return Tokenizer.parse(json.dumps(content, ensure_ascii=False))
