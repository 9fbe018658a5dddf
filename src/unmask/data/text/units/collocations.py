"""Learning phrases from a corpus: words that stand together far more often than chance would have it.

What arrives: documents with words, as a stream. What leaves: `Phrases`, in a fixed order.
What never happens here: memory that grows with the corpus. Rare sequences are forgotten when too many are held.

The strength of a sequence is its normalised pointwise mutual information (Bouma, 2009) at its weakest joint: 1 if its
two parts are never seen apart, 0 if they meet as often as chance says. Taking the weakest joint keeps `New York said`
out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress
from math import log

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import Document
from unmask.data.text.units.function_words import FUNCTION_WORDS
from unmask.data.text.units.phrases import Phrase, PhraseMatcher, sentence_numbers, words_of


@dataclass(frozen=True, slots=True)
class CollocationConfig:
    """What makes a sequence of words a phrase."""

    min_npmi: float = 0.5
    """The least normalised mutual information, from 0 to 1."""
    min_count: int = 5
    """How often it must be seen."""
    max_words: int = 4
    """The most words in a phrase."""
    max_candidates: int = 1_000_000
    """How many different sequences are held at a time. Beyond that the rarest are forgotten."""
    excluded: frozenset[str] = field(default=FUNCTION_WORDS, repr=False)
    """Words that no phrase contains. Punctuation and bare numbers never are in one."""

    def __post_init__(self) -> None:
        if self.max_words < 2 or self.min_count < 1 or self.max_candidates < 1 or not 0 <= self.min_npmi <= 1:
            raise RecipeError(
                "Collocation: needs phrases of 2 or more words, a count and a size of at least 1 and a strength from 0 "
                f"to 1; got {self.max_words}, {self.min_count}, {self.max_candidates} and {self.min_npmi}."
            )

    def describe(self) -> str:
        """One line for the manifest."""
        return f"phrases of up to {self.max_words} words seen {self.min_count} times, strength {self.min_npmi}"


def learn_phrases(documents: Iterable[Document], config: CollocationConfig | None = None) -> PhraseMatcher:
    """Count every sequence of content words, keep the strong ones, strongest first."""
    config = config or CollocationConfig()
    counts: Counter[Phrase] = Counter()
    total = floor = 0
    for document in documents:
        total += _count(document, counts, config)
        while len(counts) > config.max_candidates:
            floor += 1
            counts = Counter({phrase: seen for phrase, seen in counts.items() if seen > floor})
    return PhraseMatcher(tuple(_strongest(counts, total, config)))


def _count(document: Document, counts: Counter[Phrase], config: CollocationConfig) -> int:
    """Count the sequences of one document; returns its number of content words."""
    spans, words = words_of(document)
    content = np.fromiter((_is_content(word, config.excluded) for word in words), dtype=np.bool_, count=len(words))
    sentence = sentence_numbers(document, spans)
    barred = np.cumsum(~content)
    for length in range(1, min(config.max_words, len(words)) + 1):
        last = slice(length - 1, None)
        first = slice(0, len(words) - length + 1)
        together = content[first] & (barred[first] == barred[last]) & (sentence[first] == sentence[last])
        sequences = zip(*(words[offset:] for offset in range(length)), strict=False)
        counts.update(compress(sequences, together.tolist()))
    return int(content.sum())


def _is_content(word: str, excluded: frozenset[str]) -> bool:
    return word[0].isalpha() and word not in excluded and word.lower() not in excluded


def _strongest(counts: Counter[Phrase], total: int, config: CollocationConfig) -> list[Phrase]:
    scored = (
        (_weakest_npmi(phrase, seen, counts, total), phrase)
        for phrase, seen in counts.items()
        if len(phrase) > 1 and seen >= config.min_count
    )
    strong = sorted((-strength, phrase) for strength, phrase in scored if strength >= config.min_npmi)
    return [phrase for _, phrase in strong]


def _weakest_npmi(phrase: Phrase, seen: int, counts: Counter[Phrase], total: int) -> float:
    """Normalised mutual information of the weakest joint. A part that was forgotten counts as often as the whole."""
    surprise = log(total / seen)
    if not surprise:
        return 1.0
    weakest = min(
        log(seen * total / (max(counts[phrase[:joint]], seen) * max(counts[phrase[joint:]], seen)))
        for joint in range(1, len(phrase))
    )
    return weakest / surprise
