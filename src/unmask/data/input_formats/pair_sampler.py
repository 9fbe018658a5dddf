"""Sampling of segment pairs for whole shards: the sentences of each row, and the kind of its second segment.

The draws of a row are keyed by the number of its first sentence, so every sentence determines where the next row would
begin. The rows are found by following these steps through every document; the rest is arithmetic on arrays.

Shapes: N sentences of a shard, R rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unmask.core.records import Ints, UnitFlag
from unmask.core.rng import DrawPurpose, Key, UInts
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.input_formats.sentence_index import SentenceIndex

DRAWS_PER_SENTENCE = 14
"""Two for the target, two for the cut and the kind, two for another text, four for the front of each segment."""
_FRONT = 6
TRUE, SWAP, OTHER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class PairProbabilities:
    """What B is by a uniform number: another text below the first edge, A and B swapped below the second."""

    other: float
    swap: float
    short_fraction: float
    """The share of rows that aim at a shorter length."""
    single_sentences: bool
    """Whether a segment is one sentence."""

    def kind(self, draw: UInts, single: np.ndarray) -> Ints:
        """A lone sentence has no continuation: where there are other texts, it always gets one, as BERT does it."""
        uniform = draw / 2.0**64
        kind = np.where(uniform < self.other, OTHER, np.where(uniform < self.swap, SWAP, TRUE))
        return np.where(single & (self.other > 0), OTHER, kind)


@dataclass(frozen=True, slots=True)
class SentenceLine:
    """The sentences of all shards in one line: borders, where each shard's begin, every document's first and end."""

    offsets: Ints
    shard: Ints
    first: Ints
    last: Ints

    @staticmethod
    def of(shards: Sequence[SentenceIndex]) -> SentenceLine:
        """Each shard's borders are followed by the end of its last sentence, which is no sentence."""
        begin = np.cumsum([0, *(len(found.offsets) for found in shards)])
        first = [found.document_offsets[:-1] + at for found, at in zip(shards, begin, strict=False)]
        last = [found.document_offsets[1:] + at for found, at in zip(shards, begin, strict=False)]
        return SentenceLine(np.concatenate([found.offsets for found in shards]), begin, _concat(first), _concat(last))

    def end(self, begin_R: Ints, last_R: Ints, wanted_R: Ints) -> Ints:
        """The sentence before which at least so many tokens lie, from one on; the end of its document at most."""
        found_R = np.searchsorted(self.offsets, self.offsets[begin_R] + wanted_R)
        return np.minimum(np.maximum(found_R, begin_R + 1), last_R)


def sample_pairs(
    corpus: Corpus, indexes: Sequence[SentenceIndex], text_budget: int, probabilities: PairProbabilities, key: Key
) -> Iterator[Ints]:
    """The pairs of one shard after another: (start of A, length, start of B, length, kind)."""
    text = SentenceLine.of(indexes)
    documents = np.cumsum([0, *(len(one.document_offsets) - 1 for one in indexes)])
    for number, shard in enumerate(corpus.shards):
        drawn_ND = (
            key.fold_in("pairs", number)
            .fold_in(np.arange(len(indexes[number].offsets)))
            .bits(DrawPurpose.PLAN, DRAWS_PER_SENTENCE)
        )
        yield _PairSampler(text, text_budget, probabilities).shard(
            shard, slice(*documents[number : number + 2]), text.shard[number], drawn_ND
        )


@dataclass(frozen=True, slots=True)
class _PairSampler:
    text: SentenceLine
    text_budget: int
    probabilities: PairProbabilities

    def shard(self, shard: Shard, documents: slice, at: int, drawn_ND: UInts) -> Ints:
        """The pairs of one shard, whose sentences begin `at` a place of the line."""
        first, last = self.text.first[documents], self.text.last[documents]
        if not len(first) or first[0] == last[-1]:
            return np.zeros((0, 5), dtype=np.int64)
        all_N = np.arange(first[0], last[-1])
        rows = self._rows(all_N, np.repeat(last, last - first), drawn_ND)
        kept = _row_starts(rows.next_start - at, first - at, last - at)
        rows, drawn_RD = rows.select(kept), drawn_ND[kept]
        number_R = documents.start + np.searchsorted(last, rows.first, side="right")
        a_R2, b_R2, has_R = self._segments(rows, number_R, drawn_RD, shard)
        found: Ints = self._truncate(a_R2, b_R2, rows.kind, drawn_RD)[has_R]
        return found

    def _rows(self, first_N: Ints, last_N: Ints, drawn_ND: UInts) -> _Rows:
        """The rows that begin with each of these sentences, if one does."""
        drawn_ND = drawn_ND[: len(first_N)]
        short_N = drawn_ND[:, 0] / 2.0**64 < self.probabilities.short_fraction
        target_N = np.where(short_N, 2 + randint(drawn_ND[:, 1], self.text_budget - 1), self.text_budget)
        wanted_end = (
            np.minimum(first_N + 2, last_N)
            if self.probabilities.single_sentences
            else self.text.end(first_N, last_N, target_N)
        )
        single_N = wanted_end - first_N <= 1
        inside_N = first_N + 1 + randint(drawn_ND[:, 2], wanted_end - first_N - 1)
        middle_N = np.where(single_N, wanted_end, inside_N)
        kind_N = self.probabilities.kind(drawn_ND[:, 3], single_N)
        return _Rows(first_N, middle_N, wanted_end, target_N, kind_N)

    def _segments(self, rows: _Rows, number_R: Ints, drawn_RD: UInts, shard: Shard) -> tuple[Ints, Ints, np.ndarray]:
        """Where A and B begin and end, and which rows there are: one word alone makes no pair."""
        border = self.text.offsets
        begin_R, end_R = border[rows.first], border[rows.end]
        cut_R = border[rows.middle]
        halved_R = (rows.middle == rows.end) & (rows.kind != OTHER)
        cut_R[halved_R] = middle_words(shard, begin_R[halved_R], end_R[halved_R])
        a_R2, b_R2 = np.stack([begin_R, cut_R], 1), np.stack([cut_R, end_R], 1)
        swap_R, other_R = rows.kind == SWAP, rows.kind == OTHER
        a_R2[swap_R], b_R2[swap_R] = b_R2[swap_R], a_R2[swap_R]
        wanted_R = rows.target - (cut_R - begin_R)
        b_R2[other_R] = self._sample_other_text(number_R[other_R], wanted_R[other_R], drawn_RD[other_R])
        return a_R2, b_R2, ~(halved_R & (cut_R == begin_R))

    def _sample_other_text(self, number_R: Ints, wanted_R: Ints, drawn_RD: UInts) -> Ints:
        """Text from another document, from a random sentence on: any document but this one, with equal chances."""
        text = self.text
        other_R = randint(drawn_RD[:, 4], len(text.first) - 1)
        other_R += other_R >= number_R
        first_R, last_R = text.first[other_R], text.last[other_R]
        begin_R = first_R + randint(drawn_RD[:, 5], last_R - first_R)
        end_R = (
            begin_R + 1 if self.probabilities.single_sentences else text.end(begin_R, last_R, np.maximum(wanted_R, 1))
        )
        return np.stack([text.offsets[begin_R], text.offsets[end_R]], 1)

    def _truncate(self, a_R2: Ints, b_R2: Ints, kind_R: Ints, drawn_RD: UInts) -> Ints:
        """Cut both to the room: always from the longer one, each token from the front or the back by a coin."""
        size_a, size_b = a_R2[:, 1] - a_R2[:, 0], b_R2[:, 1] - b_R2[:, 0]
        cut_a, cut_b = split_excess(size_a, size_b, np.maximum(size_a + size_b - self.text_budget, 0))
        front_a = count_heads(drawn_RD[:, _FRONT : _FRONT + 4], cut_a)
        front_b = count_heads(drawn_RD[:, _FRONT + 4 :], cut_b)
        columns = (a_R2[:, 0] + front_a, size_a - cut_a, b_R2[:, 0] + front_b, size_b - cut_b, kind_R)
        return np.stack(columns, 1)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows by the numbers of sentences: the first one, the first one of B, and the end."""

    first: Ints
    middle: Ints
    end: Ints
    target: Ints
    kind: Ints

    @property
    def next_start(self) -> Ints:
        """With which sentence the next row begins: what another text leaves unused goes back."""
        return np.where(self.kind == OTHER, self.middle, self.end)

    def select(self, kept: Ints) -> _Rows:
        """Some of the rows."""
        return _Rows(*(part[kept] for part in (self.first, self.middle, self.end, self.target, self.kind)))


def _row_starts(next_N: Ints, first: Ints, last: Ints) -> Ints:
    """The sentences with which a row does begin."""
    steps, found = next_N.tolist(), []
    for place, end in zip(first.tolist(), last.tolist(), strict=True):
        while place < end:
            found.append(place)
            place = steps[place]
    return np.array(found, dtype=np.int64)


def randint(words: UInts, bound: int | Ints) -> Ints:
    """Whole numbers from 0 to `bound` - 1: the product of word and bound without its last 64 bits."""
    limit = np.asarray(bound).astype(np.uint64)
    low = ((words & np.uint64(0xFFFFFFFF)) * limit) >> np.uint64(32)
    return (((words >> np.uint64(32)) * limit + low) >> np.uint64(32)).astype(np.int64)


def middle_words(shard: Shard, start_R: Ints, end_R: Ints) -> Ints:
    """Where the word begins that is nearest to the middle of each sentence; the sentence's start if it is one word."""
    if not len(start_R):
        return start_R
    word = shard.base + np.flatnonzero(np.asarray(shard.units) & UnitFlag.WORD)
    twice_R = start_R + end_R
    place_R = np.searchsorted(2 * word, twice_R)
    low_R, high_R = (word[np.clip(place_R + step, 0, len(word) - 1)] for step in (-1, 0))
    has_low, has_high = (low_R > start_R) & (2 * low_R < twice_R), (high_R < end_R) & (high_R > start_R)
    takes_low = has_low & (~has_high | (twice_R - 2 * low_R <= 2 * high_R - twice_R))
    return np.where(takes_low, low_R, np.where(has_high, high_R, start_R))


def split_excess(size_a: Ints, size_b: Ints, excess: Ints) -> tuple[Ints, Ints]:
    """How many tokens each side loses when the longer side (B, if equal) loses one, `excess` times."""
    level = np.minimum(excess, np.abs(size_a - size_b))
    rest = excess - level
    less, more = rest // 2 + rest % 2, level + rest // 2
    first = size_a > size_b
    return np.where(first, more, rest // 2), np.where(first, less, level + less)


def count_heads(words_R4: UInts, coins_R: Ints) -> Ints:
    """How many of so many coins show heads: the bits of random words. Beyond 256 coins, the expected number."""
    known_R = np.minimum(coins_R, 64 * words_R4.shape[1])
    found_R: Ints = (coins_R - known_R) // 2
    for column, word_R in enumerate(words_R4.T):
        bits_R = np.clip(known_R - 64 * column, 0, 64).astype(np.uint64)
        away_R = np.uint64(64) - bits_R
        shown_R = np.where(bits_R > 0, word_R << np.minimum(away_R, np.uint64(63)), np.uint64(0))
        found_R += np.bitwise_count(shown_R)
    return found_R


def _concat(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
