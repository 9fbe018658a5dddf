"""Words as rows of tokens `[CLS] words [SEP]`; long sentences are read through overlapping sliding windows.

Windows begin and end between words. Each word is labelled at its first piece in exactly one window: the one where it
has most context on its shorter side. A word without tokens becomes [UNK].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from unmask.core.ragged import concat_ranges, offsets
from unmask.core.records import Ids, Inputs, Ints, Target
from unmask.data.text.files.encoding import check_surrogates
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.safe_splits import SafeSplit, safe_split_for
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import EncodedRows, LengthLimits
from unmask.finetuning.data.encoded_dataset import EncodedDataset, TokenLabelColumn
from unmask.finetuning.data.tagging.sentences import TaggedSentence

_NO_LIMIT = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class WordPositions:
    """The position of the first piece of each word, row by row in file order, and its label; a `TargetColumn`."""

    begin: Ints
    """Offsets: the words of row i are `begin[i]:begin[i + 1]`."""
    position: Ints
    """The position of the first piece of each word in its row."""
    labels: tuple[TokenLabelColumn, ...] = ()

    def at(self, rows: Ints, inputs: Inputs, groups: Ints) -> tuple[Target, ...]:
        """The labels of some rows, at positions of the batch."""
        return tuple(target for tags in self.labels for target in tags.at(rows, inputs, groups))

    def token_indices(self, rows: Ints) -> Ints:
        """The index of every word among the tokens of all rows, given their offsets."""
        return self.position + np.repeat(rows[:-1], np.diff(self.begin))


@dataclass(frozen=True, slots=True)
class WordPieces:
    """The tokens of words, flat."""

    ids: Ids
    begin: Ints
    """Offsets: word i has the tokens `begin[i]:begin[i + 1]`, at least one."""


class WordWindow(NamedTuple):
    """The words `start:end` of a row, of which `first:last` are labelled there."""

    start: int
    end: int
    first: int
    last: int


def encode_words(
    examples: ExampleSet[TaggedSentence], tokenizer: Tokenizer, limits: LengthLimits
) -> tuple[EncodedDataset, WordPositions]:
    """Rows for all sentences, without labels, and the position of each word in them."""
    most = limits.text_budget(1)
    pieces, cut = _truncate_words(_pieces(examples, tokenizer), max(1, most // 2))
    begin = _offsets(example.words for example in examples.examples).tolist()
    by_sentence = [list(word_windows(pieces.begin, *ends, most)) for ends in pairwise(begin)]
    table = np.array([window for some in by_sentence for window in some], dtype=np.int64)
    start, end, first, last = table.T
    words = last - first
    position = 1 + pieces.begin[concat_ranges(first, words)] - np.repeat(pieces.begin[start], words)
    positions = WordPositions(offsets(words), position)
    notes = _notes(sum(len(some) > 1 for some in by_sentence), len(examples), len(table), cut)
    return EncodedDataset(_add_special_tokens(pieces, start, end, tokenizer.vocab), positions, notes=notes), positions


def word_windows(begin: Ints, start: int, end: int, max_tokens: int) -> Iterator[WordWindow]:
    """The windows over the words `start:end`. Neighbours share about half of their tokens."""
    if begin[end] - begin[start] <= max_tokens:
        yield WordWindow(start, end, start, end)
        return
    spans = np.array(list(_spans(begin, start, end, max_tokens)), dtype=np.int64)
    word = np.arange(start, end)
    left = begin[word] - begin[spans[:, :1]]
    right = begin[spans[:, 1:]] - begin[word + 1]
    outside = (left < 0) | (right < 0)
    left[spans[:, 0] == start], right[spans[:, 1] == end] = _NO_LIMIT, _NO_LIMIT  # no context is missing there
    owner = np.where(outside, -1, np.minimum(left, right)).argmax(axis=0)
    for number in np.unique(owner).tolist():
        owned = word[owner == number]
        yield WordWindow(int(spans[number, 0]), int(spans[number, 1]), int(owned[0]), int(owned[-1]) + 1)


def _spans(begin: Ints, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """Start and end of each window in words; the last window is as full as the others."""
    first = start
    while begin[end] - begin[first] > most:
        yield first, int(np.searchsorted(begin, begin[first] + most, side="right")) - 1
        first = max(first + 1, int(np.searchsorted(begin, begin[first] + most // 2, side="right")) - 1)
    yield int(np.searchsorted(begin, begin[end] - most)), end


def _pieces(examples: ExampleSet[TaggedSentence], tokenizer: Tokenizer) -> WordPieces:
    """The tokens of each word alone; each distinct word is tokenized once."""
    words = list(chain.from_iterable(example.words for example in examples.examples))
    if safe_split_for(tokenizer.content()) is SafeSplit.BEFORE_SPACES:  # a space belongs to the word after it
        gaps = chain.from_iterable(example.has_space_before for example in examples.examples)
        words = [f" {word}" if gap else word for gap, word in zip(gaps, words, strict=True)]
    number = {word: place for place, word in enumerate(dict.fromkeys(words))}
    try:
        known = Encoder(tokenizer).encode_ids(list(number))
    except (TypeError, UnicodeEncodeError):
        for example, where in zip(examples.examples, examples.source_lines, strict=True):
            check_surrogates("".join(example.words), where)
        raise
    unknown = [tokenizer.vocab.unk]
    ids = [known[number[word]] or unknown for word in words]
    return WordPieces(np.fromiter(chain.from_iterable(ids), np.int32), _offsets(ids))


def _offsets(rows: Iterable[Sized]) -> Ints:
    return offsets(np.array([len(row) for row in rows], dtype=np.int64))


def _truncate_words(pieces: WordPieces, most: int) -> tuple[WordPieces, int]:
    """Words truncated to a number of tokens, so that a row holds more than one; and how many were longer."""
    length = np.diff(pieces.begin)
    kept = np.minimum(length, most)
    return WordPieces(pieces.ids[concat_ranges(pieces.begin[:-1], kept)], offsets(kept)), int((length > most).sum())


def _add_special_tokens(pieces: WordPieces, start: Ints, end: Ints, vocab: Vocab) -> EncodedRows:
    """Rows of words with special tokens."""
    length = pieces.begin[end] - pieces.begin[start]
    rows = offsets(length + 2)
    ids = np.full(int(rows[-1]), vocab.sep, dtype=np.int32)
    ids[rows[:-1]] = vocab.cls
    ids[concat_ranges(rows[:-1] + 1, length)] = pieces.ids[concat_ranges(pieces.begin[start], length)]
    return EncodedRows(ids, np.zeros(len(ids), dtype=np.uint8), rows, num_truncated=0)


def _notes(longer: int, sentences: int, rows: int, cut: int) -> tuple[str, ...]:
    """Sentences about long inputs for the user."""
    notes = []
    if longer:
        notes.append(
            f"sentences longer than a row: {longer:,} of {sentences:,}; they are read through sliding windows that "
            f"overlap by half, and each word is tagged where it has most context: {rows:,} rows in all"
        )
    if cut:
        notes.append(f"words with more tokens than half a row: {cut:,}; the rest of each was truncated")
    return tuple(notes)
