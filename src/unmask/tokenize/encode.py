"""Documents in, token documents out, fast.

What arrives: a `Document` with marks in characters. What leaves: a `TokenDoc` with the ids that the tokenizer gives for
the whole text, and the marks as units of tokens.
What never happens here: special ids. A text that contains "[MASK]" or "<mask>" is text like any other.

Encoding with offsets is slow (2 MB/s), and the same chunks come again and again. So the text is cut where cutting is
proven to change nothing (`cuts.py`), every chunk is looked up in a bounded table, and only unknown ones are encoded.
What comes out never depends on what is in the table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Pipeline

from unmask.errors import InputError
from unmask.records import Document, Ids, Ints, TokenDoc
from unmask.tokenize.chunks import Chunks, Tokens
from unmask.tokenize.cuts import Cut, Points, before_spaces, code_points, safe_cut, separates
from unmask.tokenize.project import project
from unmask.tokenize.tokenizer import Tokenizer

_UNMET, _JOINS = -2, -1
_LONG = 64
_BATCH = 4096


class Encoder:
    """Encodes with one tokenizer and remembers up to `capacity` chunks. Each process makes its own."""

    def __init__(self, tokenizer: Tokenizer, capacity: int = 1 << 18) -> None:
        content = tokenizer.content()
        self._cut = safe_cut(content)
        self._pipeline = _without_specials(content)
        self._capacity = capacity
        self._forget()

    def __call__(self, document: Document) -> TokenDoc:
        """Tokens and units of a document."""
        try:
            tokens = self.tokens(document.text)
        except UnicodeEncodeError as error:
            raise InputError(
                f"document {document.id}: character {error.start} is half of a surrogate pair, which is no text; "
                "clean the text before it is tokenised"
            ) from error
        units, labels = project(tokens.starts, tokens.ends, document.marks)
        return TokenDoc(tokens.ids, units, labels)

    def tokens(self, text: str) -> Tokens:
        """The ids of a text, and the characters that each token covers."""
        if len(self._chunks) > self._capacity:
            self._forget()
        points = code_points(text)
        if self._cut in (Cut.AROUND_SEPARATORS, Cut.AROUND_DROPPED):
            at, rows = self._around_separators(text, points)
        else:
            at = before_spaces(points) if self._cut is Cut.BEFORE_SPACES else np.arange(min(len(points), 1))
            rows = self._look_up(_slices(text, at, np.append(at, len(points))[1:]))
        tokens = self._chunks.gather(rows, at)
        self._chunks.keep(self._kept)
        return tokens

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many short texts at once, for those who need no more than ids."""
        return [encoding.ids for encoding in self._pipeline.encode_batch_fast(texts, add_special_tokens=False)]

    def _around_separators(self, text: str, points: Points) -> tuple[Ints, Ints]:
        """A separator is a chunk, found by its code point; what lies between two of them is one, found as a string."""
        known = self._alone[points]
        if (known == _UNMET).any():
            self._meet(np.unique(points[known == _UNMET]))
            known = self._alone[points]
        joins = known == _JOINS
        begins = ~joins
        begins[1:] |= ~joins[:-1]
        begins[:1] = True
        at = np.flatnonzero(begins)
        rows = known[at].astype(np.int64)
        words = np.flatnonzero(joins[at])
        rows[words] = self._look_up(_slices(text, at[words], np.append(at, len(points))[words + 1]))
        return at, rows

    def _meet(self, points: Points) -> None:
        """Ask the pipeline about characters that were never seen before."""
        alone = [point for point in points.tolist() if separates(self._pipeline, chr(point), self._cut)]
        self._alone[points] = _JOINS
        self._alone[alone] = len(self._chunks) + np.arange(len(alone))
        self._add([chr(point) for point in alone])
        self._kept = len(self._chunks)

    def _look_up(self, chunks: Sequence[str]) -> Ints:
        """The row of each chunk. Unknown ones are encoded now; long ones are forgotten after this text."""
        known = self._row
        rows = np.fromiter(map(known.get, chunks, repeat(_UNMET)), np.int64, len(chunks))
        unknown = np.flatnonzero(rows == _UNMET).tolist()
        if not unknown:
            return rows
        # Long chunks last, so that they can be taken off the end of the table again.
        new = sorted(dict.fromkeys(chunks[place] for place in unknown), key=lambda chunk: len(chunk) > _LONG)
        fresh = {chunk: row for row, chunk in enumerate(new, start=len(self._chunks))}
        self._add(new)
        known.update((chunk, row) for chunk, row in fresh.items() if len(chunk) <= _LONG)
        self._kept = len(self._chunks) - sum(len(chunk) > _LONG for chunk in new)
        rows[unknown] = [fresh[chunks[place]] for place in unknown]
        return rows

    def _add(self, chunks: Sequence[str]) -> None:
        for first in range(0, len(chunks), _BATCH):
            some = chunks[first : first + _BATCH]
            self._chunks.add(some, self._pipeline.encode_batch(some, add_special_tokens=False))

    def _forget(self) -> None:
        self._chunks = Chunks()
        self._kept = 0
        self._row: dict[str, int] = {}
        self._alone: Ids = np.full(0x110000, _UNMET, dtype=np.int32)


def _slices(text: str, starts: Ints, ends: Ints) -> list[str]:
    return [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _without_specials(content: dict[str, Any]) -> Pipeline:
    """The same pipeline with every special token renamed to what no text holds: all ids stay, none can be met.

    Without this a Unigram model finds "<mask>" as the best piece for the text "<mask>", and so would added tokens.
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
    model.pop("dropout", None)  # drawing at random while encoding would make the ids depend on the table
    return Pipeline.from_str(json.dumps(content, ensure_ascii=False))
