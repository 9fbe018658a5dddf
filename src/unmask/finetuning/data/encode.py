"""Texts as rows of tokens: `[CLS] A [SEP]`, or `[CLS] A [SEP] B [SEP]`.

What arrives: texts or pairs of texts, and a tokenizer. What leaves: `Encoded`, all rows flat in a few arrays.
What never happens here: a row longer than it may be, or a special token that a text spelled out. What does not fit is
cut from the end, of the longer text first, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from unmask.core.errors import InputError
from unmask.core.ragged import concat_ranges, offsets, positions_in_rows
from unmask.core.records import Bits, Ids, Inputs, Ints
from unmask.data.text.files.encoding import check_surrogates
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab

_BATCH = 4096


@dataclass(frozen=True, slots=True)
class LengthLimits:
    """How long a row may be, and how many segments the network tells apart."""

    max_length: int
    num_segments: int = 2

    def text_budget(self, texts: int) -> int:
        """The tokens that are left for text: [CLS] and a [SEP] after each text take the rest."""
        left = self.max_length - 1 - texts
        if left < texts:
            raise InputError(
                f"Rows of {self.max_length} tokens are too short for {texts} texts; use --max-length 16 or more."
            )
        return left


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows of tokens, one after another."""

    ids: Ids
    segment: Bits
    offsets: Ints
    num_truncated: int
    """How many rows were longer than they may be."""
    prefix: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """How many tokens of each row are a source that does not see what stands behind it; empty: rows see themselves."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """The number of tokens of each row."""
        return np.diff(self.offsets)

    def take(self, chosen: Ints) -> Inputs:
        """Some rows, as a network is shown them."""
        length = self.lengths[chosen]
        at, rows = concat_ranges(self.offsets[chosen], length), offsets(length)
        prefix = self.prefix[chosen] if len(self.prefix) else self.prefix
        return Inputs(
            self.ids[at], self.segment[at], np.zeros(len(at), dtype=np.int32), positions_in_rows(rows), rows, prefix
        )


def encode_texts(
    texts: Sequence[Sequence[str]],
    tokenizer: Tokenizer,
    limits: LengthLimits,
    where: Sequence[str] = (),
    tick: Callable[[int], None] = lambda done: None,
) -> EncodedRows:
    """Encode rows that all have equally many texts. `tick` hears how many rows are done."""
    assert texts, "there are rows to encode"
    pieces, lengths = _tokens(texts, tokenizer, where, tick)
    lengths = lengths.reshape(len(texts), -1)
    kept = truncate_pair(lengths, limits.text_budget(lengths.shape[1]))
    cut = int((kept < lengths).any(axis=1).sum())
    return _add_special_tokens(pieces, lengths, kept, tokenizer.vocab, cut, limits.num_segments)


def truncate_pair(lengths_NK: Ints, budget: int) -> Ints:
    """How many tokens each text of a row keeps: the longer of two gives way until both are equally long."""
    if lengths_NK.shape[1] == 1:
        return np.minimum(lengths_NK, budget)
    longer = np.where(lengths_NK[:, 0] > lengths_NK[:, 1], 0, 1)[:, None]
    short = np.minimum(np.take_along_axis(lengths_NK, 1 - longer, axis=1), budget // 2)
    long = np.minimum(np.take_along_axis(lengths_NK, longer, axis=1), budget - short)
    kept: Ints = np.where(np.arange(2) == longer, long, short)
    return np.where(lengths_NK.sum(axis=1, keepdims=True) > budget, kept, lengths_NK)


def _tokens(
    texts: Sequence[Sequence[str]], tokenizer: Tokenizer, where: Sequence[str], tick: Callable[[int], None]
) -> tuple[Ids, Ints]:
    """The tokens of all texts, flat, and how many each text has."""
    encoder, parts, counts = Encoder(tokenizer), [], []
    for first in range(0, len(texts), _BATCH):
        some = list(chain.from_iterable(texts[first : first + _BATCH]))
        try:
            ids = encoder.encode_ids(some)
        except (TypeError, UnicodeEncodeError):
            _raise_surrogate_error(texts, where, first)
            raise
        counts.append(np.fromiter(map(len, ids), np.int64, len(ids)))
        parts.append(np.fromiter(chain.from_iterable(ids), np.int32, int(counts[-1].sum())))
        tick(min(first + _BATCH, len(texts)))
    return np.concatenate(parts), np.concatenate(counts)


def _add_special_tokens(flat: Ids, lengths: Ints, kept: Ints, vocab: Vocab, cut: int, segments: int) -> EncodedRows:
    """Place the special tokens around what is kept of each text."""
    rows, texts = kept.shape
    place = np.tile(np.arange(texts), rows)
    opens = (place == 0).astype(np.int64)
    begin = offsets(opens + kept.reshape(-1) + 1)
    ids = np.full(int(begin[-1]), vocab.sep, dtype=np.int32)
    ids[begin[:-1][opens > 0]] = vocab.cls
    start = offsets(lengths.reshape(-1))[:-1]
    ids[concat_ranges(begin[:-1] + opens, kept.reshape(-1))] = flat[concat_ranges(start, kept.reshape(-1))]
    segment = np.minimum(place, max(segments - 1, 0)).astype(np.uint8)
    return EncodedRows(ids, np.repeat(segment, np.diff(begin)), begin[::texts].copy(), cut)


def _raise_surrogate_error(texts: Sequence[Sequence[str]], where: Sequence[str], first: int) -> None:
    """Find the text that is no text: one that holds half of a character."""
    for number, row in enumerate(texts[first:], start=first):
        for text in row:
            check_surrogates(text, where[number] if where else f"row {number + 1}")
