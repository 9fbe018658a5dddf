"""Encode texts as rows of tokens: `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`.

Rows that are too long are truncated longest-first, from the end, and counted. Special tokens spelled out in a text are
text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

import numpy as np

from unmask.core.errors import InputError
from unmask.core.ragged import concat_ranges, offsets, positions_in_rows
from unmask.core.records import Bits, Ids, Inputs, Ints
from unmask.data.text.files.encoding import check_surrogates
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab
from unmask.finetuning.data.dataset import AnyExampleSet

_BATCH = 4096
Ticker: TypeAlias = Callable[[int], None]
"""Progress callback: receives how many items are done."""


def ignore_progress(done: int) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True, slots=True)
class LengthLimits:
    """The maximum row length and the number of segment embeddings."""

    max_length: int
    num_segments: int = 2

    def text_budget(self, texts: int) -> int:
        """The tokens left for text next to [CLS] and one [SEP] per text."""
        left = self.max_length - 1 - texts
        if left < texts:
            raise InputError(
                f"Rows of {self.max_length} tokens are too short for {texts} texts; use --max-length 16 or more."
            )
        return left


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows of tokens, flat in a few arrays."""

    ids: Ids
    segment: Bits
    offsets: Ints
    num_truncated: int
    """How many rows were too long."""
    prefix: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Source tokens of each row, which cannot attend to the rest of it (prefix LM); empty: full attention."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """The number of tokens of each row."""
        return np.diff(self.offsets)

    def take(self, chosen: Ints) -> Inputs:
        """Some rows as network inputs."""
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
    tick: Ticker = ignore_progress,
) -> EncodedRows:
    """Encode rows that all have equally many texts. `where` holds the line of each row, for error messages."""
    assert texts, "there are rows to encode"
    pieces, lengths = _tokens(texts, tokenizer, where, tick)
    lengths = lengths.reshape(len(texts), -1)
    kept = truncate_pair(lengths, limits.text_budget(lengths.shape[1]))
    cut = int((kept < lengths).any(axis=1).sum())
    return _add_special_tokens(pieces, lengths, kept, tokenizer.vocab, cut, limits.num_segments)


def encode_examples(
    examples: AnyExampleSet, tokenizer: Tokenizer, limits: LengthLimits, tick: Ticker = ignore_progress
) -> EncodedRows:
    """One row of tokens for each example."""
    texts = [example.texts for example in examples.examples]
    return encode_texts(texts, tokenizer, limits, examples.source_lines, tick)


def encode_groups(
    texts: Sequence[Sequence[Sequence[str]]],
    where: Sequence[str],
    tokenizer: Tokenizer,
    limits: LengthLimits,
    tick: Ticker = ignore_progress,
) -> tuple[EncodedRows, Ints]:
    """Rows for groups of texts, such as the choices of a question, and the offsets of the groups over the rows."""
    counts = np.array([len(group) for group in texts], dtype=np.int64)
    groups = offsets(counts)
    lines = np.repeat(np.array(where, dtype=object), counts).tolist()

    def tick_groups(done: int) -> None:
        tick(int(np.searchsorted(groups, done, "right")) - 1)

    return encode_texts(list(chain.from_iterable(texts)), tokenizer, limits, lines, tick_groups), groups


def truncate_pair(lengths_NK: Ints, budget: int) -> Ints:
    """How many tokens each text of a row keeps: of two texts, the longer one is cut until both are equally long."""
    if lengths_NK.shape[1] == 1:
        return np.minimum(lengths_NK, budget)
    longer = np.where(lengths_NK[:, 0] > lengths_NK[:, 1], 0, 1)[:, None]
    short = np.minimum(np.take_along_axis(lengths_NK, 1 - longer, axis=1), budget // 2)
    long = np.minimum(np.take_along_axis(lengths_NK, longer, axis=1), budget - short)
    kept: Ints = np.where(np.arange(2) == longer, long, short)
    return np.where(lengths_NK.sum(axis=1, keepdims=True) > budget, kept, lengths_NK)


def _tokens(
    texts: Sequence[Sequence[str]], tokenizer: Tokenizer, where: Sequence[str], tick: Ticker
) -> tuple[Ids, Ints]:
    """The tokens of all texts, flat, and the length of each text."""
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
    """Rows with special tokens around the kept tokens of each text."""
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
    """Raise the error for the first text that holds half of a surrogate pair."""
    for number, row in enumerate(texts[first:], start=first):
        for text in row:
            check_surrogates(text, where[number] if where else f"row {number + 1}")
