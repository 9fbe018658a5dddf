"""Unigram: the vocabulary of ALBERT, XLNet and T5 (Kudo, 2018), with log-probabilities of pieces.

A text is split into the pieces with the highest probability. Any whitespace only marks the start of a word, shown as
`▁`.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tokenizers import Tokenizer as Pipeline
from tokenizers import decoders, models, normalizers, pre_tokenizers

from unmask.data.tokenize.special_tokens import ALBERT, SpecialTokens
from unmask.data.tokenize.trainers.train import by_frequency, check_vocab_size, count_words, pair_template

_SPACE = "▁"
_WORDS = 1 << 19
_CHARACTERS = 1_000_000
"""The total length of the different words that pieces are fitted to; more cost memory and change little."""
# Pieces do not cross from letters into punctuation, and long Chinese clauses are split.
_LEARNABLE = re.compile(rf"{_SPACE}?(?:\w{{1,24}}|[^\w\s{_SPACE}]{{1,24}})")


@dataclass(frozen=True, slots=True)
class Unigram:
    """The most probable pieces, up to `size`; `coverage` of all character occurrences get a piece."""

    size: int = 32000
    coverage: float = 0.9995
    num_sentinels: int = 0

    def __post_init__(self) -> None:
        check_vocab_size(self, len(self.ordered_specials) + 1)

    @property
    def special_tokens(self) -> SpecialTokens:
        """ALBERT's special tokens."""
        return ALBERT

    @property
    def ordered_specials(self) -> tuple[str, ...]:
        """ALBERT's order: padding is 0, unknown is 1."""
        return (ALBERT.pad, ALBERT.unk, ALBERT.cls, ALBERT.sep, ALBERT.mask)

    def untrained_pipeline(self) -> Pipeline:
        """NFKC, a split at whitespace, and a `▁` before every word."""
        pipeline = Pipeline(models.Unigram([(ALBERT.unk, 0.0)], 0))
        pipeline.normalizer = normalizers.NFKC()
        words = pre_tokenizers.Metaspace(replacement=_SPACE, prepend_scheme="always", split=True)
        pipeline.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), words])
        pipeline.post_processor = pair_template(ALBERT, self.ordered_specials)
        pipeline.decoder = decoders.Metaspace(replacement=_SPACE, prepend_scheme="always", split=True)
        return pipeline

    def train(self, texts: Iterable[str], progress: bool) -> dict[str, Any]:
        """Count words, keep the characters that cover almost all text, and fit the pieces."""
        from unmask.data.tokenize.trainers.unigram_trainer import fit_unigram

        room = self.size - self.num_sentinels - len(self.ordered_specials)
        pieces = fit_unigram(self._count_training_words(texts, room), room)
        fixed = [[name, 0.0] for name in self.ordered_specials]
        vocab = [*fixed, *([piece, score] for piece, score in pieces)]
        return {
            "type": "Unigram",
            "unk_id": self.ordered_specials.index(ALBERT.unk),
            "vocab": vocab,
            "byte_fallback": False,
        }

    def _count_training_words(self, texts: Iterable[str], room: int) -> Counter[str]:
        normalizer = self.untrained_pipeline().normalizer
        words = count_words(texts, lambda text: _words(normalizer.normalize_str(text)), max_words=_WORDS)
        return _most_used(_split_at_unknown(words, self._alphabet(words, room)))

    def _alphabet(self, words: Counter[str], room: int) -> set[str]:
        counts: Counter[str] = Counter({_SPACE: 1})
        for word, count in words.items():
            for character in word:
                counts[character] += count
        enough = self.coverage * counts.total()
        kept: set[str] = {_SPACE}
        covered = 0
        for character in by_frequency(counts):
            if covered >= enough or len(kept) >= room:
                break
            covered += counts[character]
            kept.add(character)
        return kept


def _words(text: str) -> Iterator[str]:
    for stretch in text.split():
        yield from _LEARNABLE.findall(_SPACE + stretch)


def _most_used(words: Counter[str]) -> Counter[str]:
    """The most frequent words up to the length limit; ties are broken by a fixed random order."""
    order = sorted(words, key=lambda word: (-words[word], zlib.crc32(word.encode()), word))
    ends = accumulate(map(len, order))
    return Counter({word: words[word] for word, end in zip(order, ends, strict=True) if end <= _CHARACTERS})


def _split_at_unknown(words: Counter[str], alphabet: set[str]) -> Counter[str]:
    """The same words, split at characters outside the alphabet."""
    kept: Counter[str] = Counter()
    for word, count in words.items():
        for part in "".join(c if c in alphabet else " " for c in word).split():
            kept[part] += count
    return kept
