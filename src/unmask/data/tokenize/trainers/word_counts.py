"""Counts the words of a stream of texts: what the trainers learn from.

What arrives: texts, once, in order. What leaves: how often each word was seen, after normalisation.
What never happens here: keeping the texts. Memory grows with the number of different words, and that is bounded: when
there are too many, words seen only once are forgotten. The same texts in the same order always give the same counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

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
