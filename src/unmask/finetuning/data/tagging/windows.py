"""Words as rows of tokens: `[CLS] words [SEP]`, long sentences in windows that overlap.

What arrives: words. What leaves: rows, and the place of the first piece of every word in exactly one of them.
What never happens here: a lost word. One of which tokenising leaves nothing becomes [UNK]. Windows begin and end
between words, and each word belongs to the window in which it has most context on its poorer side.
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
    """Where the first piece of each word stands, row by row, with the tags there if they are told; a `Truth`.

    Over all rows, words come in the order of the file.
    """

    begin: Ints
    """Offsets: the words of row i are `begin[i]:begin[i + 1]`."""
    position: Ints
    """Where each word begins in its row."""
    labels: tuple[TokenLabelColumn, ...] = ()

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """Their tags, at the places of the batch."""
        return tuple(target for tags in self.labels for target in tags.at(rows, inputs, items))

    def token_indices(self, rows: Ints) -> Ints:
        """The place of every word among the tokens of all rows, given their offsets."""
        return self.position + np.repeat(rows[:-1], np.diff(self.begin))


@dataclass(frozen=True, slots=True)
class WordPieces:
    """The tokens of words, one after another."""

    ids: Ids
    begin: Ints
    """Offsets: word i has the tokens `begin[i]:begin[i + 1]`, at least one."""


class WordWindow(NamedTuple):
    """Some words in a row, and those of them that are tagged there; by their numbers among all words."""

    start: int
    end: int
    first: int
    last: int
    """One beyond the last word that is tagged there."""


def encode_words(
    sheet: ExampleSet[TaggedSentence], tokenizer: Tokenizer, limits: LengthLimits
) -> tuple[EncodedDataset, WordPositions]:
    """Rows for all questions, without their truths, and where each word stands in them."""
    most = limits.text_budget(1)
    pieces, cut = _truncate_words(_pieces(sheet, tokenizer), max(1, most // 2))
    begin = _offsets(question.words for question in sheet.examples).tolist()
    by_question = [list(word_windows(pieces.begin, *ends, most)) for ends in pairwise(begin)]
    table = np.array([window for some in by_question for window in some], dtype=np.int64)
    start, end, first, last = table.T
    words = last - first
    place = 1 + pieces.begin[concat_ranges(first, words)] - np.repeat(pieces.begin[start], words)
    places = WordPositions(offsets(words), place)
    notes = _notes(sum(len(some) > 1 for some in by_question), len(sheet), len(table), cut)
    return EncodedDataset(_add_special_tokens(pieces, start, end, tokenizer.vocab), places, notes=notes), places


def word_windows(begin: Ints, start: int, end: int, max_tokens: int) -> Iterator[WordWindow]:
    """The windows of the words `start:end`. Neighbours share about half of their tokens.

    So every word has a quarter of a window on either side, unless the text ends there.
    """
    if begin[end] - begin[start] <= max_tokens:
        yield WordWindow(start, end, start, end)
        return
    spans = np.array(list(_spans(begin, start, end, max_tokens)), dtype=np.int64)
    word = np.arange(start, end)
    left = begin[word] - begin[spans[:, :1]]
    right = begin[spans[:, 1:]] - begin[word + 1]
    outside = (left < 0) | (right < 0)
    left[spans[:, 0] == start], right[spans[:, 1] == end] = _NO_LIMIT, _NO_LIMIT  # nothing is missing there
    owner = np.where(outside, -1, np.minimum(left, right)).argmax(axis=0)
    for number in np.unique(owner).tolist():
        mine = word[owner == number]
        yield WordWindow(int(spans[number, 0]), int(spans[number, 1]), int(mine[0]), int(mine[-1]) + 1)


def _spans(begin: Ints, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """First and last word of each window; the last window is as full as the others."""
    first = start
    while begin[end] - begin[first] > most:
        yield first, int(np.searchsorted(begin, begin[first] + most, side="right")) - 1
        first = max(first + 1, int(np.searchsorted(begin, begin[first] + most // 2, side="right")) - 1)
    yield int(np.searchsorted(begin, begin[end] - most)), end


def _pieces(sheet: ExampleSet[TaggedSentence], tokenizer: Tokenizer) -> WordPieces:
    """Each word is tokenised on its own, and each different word once."""
    spoken = list(chain.from_iterable(question.words for question in sheet.examples))
    if safe_split_for(tokenizer.content()) is SafeSplit.BEFORE_SPACES:  # a space belongs to the word after it
        gaps = chain.from_iterable(question.has_space_before for question in sheet.examples)
        spoken = [f" {word}" if gap else word for gap, word in zip(gaps, spoken, strict=True)]
    number = {word: place for place, word in enumerate(dict.fromkeys(spoken))}
    try:
        known = Encoder(tokenizer).encode_ids(list(number))
    except (TypeError, UnicodeEncodeError):
        for question, where in zip(sheet.examples, sheet.source_lines, strict=True):
            check_surrogates("".join(question.words), where)
        raise
    lost = [tokenizer.vocab.unk]
    ids = [known[number[word]] or lost for word in spoken]
    return WordPieces(np.fromiter(chain.from_iterable(ids), np.int32), _offsets(ids))


def _offsets(rows: Iterable[Sized]) -> Ints:
    return offsets(np.array([len(row) for row in rows], dtype=np.int64))


def _truncate_words(pieces: WordPieces, most: int) -> tuple[WordPieces, int]:
    """Words of at most so many tokens, so that a row holds more than one; and how many were longer."""
    length = np.diff(pieces.begin)
    kept = np.minimum(length, most)
    return WordPieces(pieces.ids[concat_ranges(pieces.begin[:-1], kept)], offsets(kept)), int((length > most).sum())


def _add_special_tokens(pieces: WordPieces, start: Ints, end: Ints, vocab: Vocab) -> EncodedRows:
    """[CLS] before and [SEP] after the words of each row."""
    length = pieces.begin[end] - pieces.begin[start]
    rows = offsets(length + 2)
    ids = np.full(int(rows[-1]), vocab.sep, dtype=np.int32)
    ids[rows[:-1]] = vocab.cls
    ids[concat_ranges(rows[:-1] + 1, length)] = pieces.ids[concat_ranges(pieces.begin[start], length)]
    return EncodedRows(ids, np.zeros(len(ids), dtype=np.uint8), rows, num_truncated=0)


def _notes(longer: int, sentences: int, rows: int, cut: int) -> tuple[str, ...]:
    """What became of long inputs, in sentences."""
    said = []
    if longer:
        said.append(
            f"sentences longer than a row: {longer:,} of {sentences:,}; they are read through windows that overlap by "
            f"half, and each word is tagged where it has most context: {rows:,} rows in all"
        )
    if cut:
        said.append(f"words with more tokens than half a row: {cut:,}; the rest of each was left out")
    return tuple(said)
