"""The encoder: documents become token ids with units, through a cache of text chunks.

Encoding with offsets is slow (2 MB/s), and chunks repeat. The text is split where that provably changes no token
(`safe_splits.py`), every chunk is looked up in a bounded cache, and only unknown ones are encoded. The result does not
depend on the cache. Special tokens in a text, such as "[MASK]", are encoded as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding
from tokenizers import Tokenizer as Pipeline

from unmask.core.errors import InputError
from unmask.core.ragged import concat_ranges
from unmask.core.records import Document, Ids, Ints, TokenDoc
from unmask.data.tokenize.align import align_units
from unmask.data.tokenize.safe_splits import (
    CodePoints,
    SafeSplit,
    code_points,
    is_whitespace,
    isolates_char,
    safe_split_for,
    splits_before_spaces,
)
from unmask.data.tokenize.tokenizer import Tokenizer


class EncodedText(NamedTuple):
    """Token ids, and the characters that each token covers; a token of whitespace alone covers none."""

    ids: Ids
    starts: Ints
    ends: Ints


class ChunkCache:
    """The tokens of cached chunks in flat arrays: row r is `bounds[r]:bounds[r + 1]`. Rows are added and removed at the
    end.
    """

    def __init__(self) -> None:
        self._bounds = np.zeros(1, dtype=np.int64)
        self._tokens = np.zeros((3, 0), dtype=np.int32)
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, chunks: Sequence[str], encodings: Sequence[Encoding]) -> None:
        """Add one row for each chunk."""
        counts = np.fromiter((len(encoding) for encoding in encodings), np.int64, len(encodings))
        ids = _flat((encoding.ids for encoding in encodings), int(counts.sum()))
        pairs = chain.from_iterable(encoding.offsets for encoding in encodings)
        spans = _flat(pairs, 2 * len(ids)).reshape(-1, 2)
        starts, ends = _strip_whitespace(chunks, counts, spans[:, 0], spans[:, 1])
        used = int(self._bounds[self._rows])
        self._reserve(self._rows + len(chunks), used + len(ids))
        self._bounds[self._rows + 1 : self._rows + len(chunks) + 1] = used + np.cumsum(counts)
        self._tokens[:, used : used + len(ids)] = ids, starts, ends
        self._rows += len(chunks)

    def truncate(self, rows: int) -> None:
        """Remove all rows but the first ones."""
        self._rows = rows

    def gather(self, rows: Ints, starts: Ints) -> EncodedText:
        """The tokens of these rows in order, each row shifted to the position of its chunk in the text."""
        first = self._bounds[rows]
        counts = self._bounds[rows + 1] - first
        flat = concat_ranges(first, counts)
        shift = np.repeat(starts, counts)
        return EncodedText(self._tokens[0, flat], self._tokens[1, flat] + shift, self._tokens[2, flat] + shift)

    def _reserve(self, rows: int, tokens: int) -> None:
        """Grow the arrays by doubling."""
        if rows + 1 > len(self._bounds):
            self._bounds = np.concatenate((self._bounds, np.zeros(2 * rows, dtype=np.int64)))
        if tokens > self._tokens.shape[1]:
            self._tokens = np.concatenate((self._tokens, np.zeros((3, 2 * tokens), dtype=np.int32)), axis=1)


def _flat(lists: Iterable[Iterable[int]], count: int) -> npt.NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(lists), np.int64, count)


def _strip_whitespace(chunks: Sequence[str], counts: Ints, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Strip whitespace from the span of every token; a token of whitespace becomes empty."""
    points = code_points("".join(chunks))
    lengths = np.fromiter(map(len, chunks), np.int64, len(chunks))
    base = np.repeat(np.cumsum(lengths) - lengths, counts)
    shown = ~is_whitespace(points)
    where = np.append(np.flatnonzero(shown), 0)
    before = np.concatenate(([0], np.cumsum(shown)))
    low, high = before[starts + base], before[ends + base]
    seen = high > low
    return np.where(seen, where[low] - base, starts), np.where(seen, where[high - 1] + 1 - base, starts)


_UNSEEN, _JOINS = -2, -1
_MAX_CACHED_CHARS = 64
_BATCH = 4096


class Encoder:
    """Encodes with one tokenizer and caches up to `capacity` chunks. Each process creates its own."""

    def __init__(self, tokenizer: Tokenizer, capacity: int = 1 << 18) -> None:
        content = tokenizer.content()
        self._safe_split = safe_split_for(content)
        self._pipeline = _without_specials(content)
        self._capacity = capacity
        self._clear_cache()

    def __call__(self, document: Document) -> TokenDoc:
        """The token ids, units and labels of a document."""
        try:
            tokens = self.encode_text(document.text)
        except UnicodeEncodeError as error:
            raise InputError(
                f"document {document.id}: character {error.start} is half of a surrogate pair, which is not text; "
                "clean the text before it is tokenised"
            ) from error
        units, labels = align_units(tokens.starts, tokens.ends, document.char_spans)
        return TokenDoc(tokens.ids, units, labels)

    def encode_text(self, text: str) -> EncodedText:
        """The ids of a text, and the characters that each token covers."""
        if len(self._chunks) > self._capacity:
            self._clear_cache()
        points = code_points(text)
        if self._safe_split in (SafeSplit.AROUND_SEPARATORS, SafeSplit.AROUND_DROPPED):
            at, rows = self._around_separators(text, points)
        else:
            at = (
                splits_before_spaces(points)
                if self._safe_split is SafeSplit.BEFORE_SPACES
                else np.arange(min(len(points), 1))
            )
            rows = self._look_up(_slices(text, at, np.append(at, len(points))[1:]))
        tokens = self._chunks.gather(rows, at)
        self._chunks.truncate(self._num_cached)
        return tokens

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many short texts, without offsets."""
        return [encoding.ids for encoding in self._pipeline.encode_batch_fast(texts, add_special_tokens=False)]

    def _around_separators(self, text: str, points: CodePoints) -> tuple[Ints, Ints]:
        """Chunks of a text split around separators: each separator is one, and each string between two."""
        known = self._row_of_point[points]
        if (known == _UNSEEN).any():
            self._classify_points(np.unique(points[known == _UNSEEN]))
            known = self._row_of_point[points]
        joins = known == _JOINS
        begins = ~joins
        begins[1:] |= ~joins[:-1]
        begins[:1] = True
        at = np.flatnonzero(begins)
        rows = known[at].astype(np.int64)
        words = np.flatnonzero(joins[at])
        rows[words] = self._look_up(_slices(text, at[words], np.append(at, len(points))[words + 1]))
        return at, rows

    def _classify_points(self, points: CodePoints) -> None:
        """Classify characters that occur for the first time, with the pipeline itself."""
        alone = [point for point in points.tolist() if isolates_char(self._pipeline, chr(point), self._safe_split)]
        self._row_of_point[points] = _JOINS
        self._row_of_point[alone] = len(self._chunks) + np.arange(len(alone))
        self._add([chr(point) for point in alone])
        self._num_cached = len(self._chunks)

    def _look_up(self, chunks: Sequence[str]) -> Ints:
        """The row of each chunk. Unknown ones are encoded; long ones are not kept after this text."""
        known = self._row_of_chunk
        rows = np.fromiter(map(known.get, chunks, repeat(_UNSEEN)), np.int64, len(chunks))
        unknown = np.flatnonzero(rows == _UNSEEN).tolist()
        if not unknown:
            return rows
        # Long chunks last, so that `truncate` can remove them.
        new = sorted(
            dict.fromkeys(chunks[place] for place in unknown), key=lambda chunk: len(chunk) > _MAX_CACHED_CHARS
        )
        fresh = {chunk: row for row, chunk in enumerate(new, start=len(self._chunks))}
        self._add(new)
        known.update((chunk, row) for chunk, row in fresh.items() if len(chunk) <= _MAX_CACHED_CHARS)
        self._num_cached = len(self._chunks) - sum(len(chunk) > _MAX_CACHED_CHARS for chunk in new)
        rows[unknown] = [fresh[chunks[place]] for place in unknown]
        return rows

    def _add(self, chunks: Sequence[str]) -> None:
        for first in range(0, len(chunks), _BATCH):
            some = chunks[first : first + _BATCH]
            self._chunks.add(some, self._pipeline.encode_batch(some, add_special_tokens=False))

    def _clear_cache(self) -> None:
        self._chunks = ChunkCache()
        self._num_cached = 0
        self._row_of_chunk: dict[str, int] = {}
        self._row_of_point: Ids = np.full(0x110000, _UNSEEN, dtype=np.int32)


def _slices(text: str, starts: Ints, ends: Ints) -> list[str]:
    return [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _without_specials(content: dict[str, Any]) -> Pipeline:
    """The same pipeline with special tokens renamed to strings that no text contains; ids stay the same.

    Otherwise a Unigram model finds "<mask>" as the best piece of the text "<mask>", and added tokens match too.
    """
    model = content["model"]
    special = {token["content"] for token in content["added_tokens"] if token["special"]}
    special.add(model.get("unk_token"))
    hidden = {name: f"\uffff\ufffe{number}\uffff" for number, name in enumerate(sorted(filter(None, special)))}
    if isinstance(model["vocab"], dict):
        model["vocab"] = {hidden.get(entry, entry): number for entry, number in model["vocab"].items()}
    else:
        model["vocab"] = [[hidden.get(entry, entry), score] for entry, score in model["vocab"]]
    if model.get("unk_token"):
        model["unk_token"] = hidden[model["unk_token"]]
    for token in content["added_tokens"]:
        token["content"] = hidden.get(token["content"], token["content"])
    content.update(post_processor=None, padding=None, truncation=None)
    model.pop("dropout", None)  # random segmentation would make the ids depend on the cache
    return Pipeline.from_str(json.dumps(content, ensure_ascii=False))
