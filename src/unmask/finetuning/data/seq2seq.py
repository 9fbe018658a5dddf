"""Sequence-to-sequence files (source text, target text) and their encoding as rows of tokens.

A source is `[CLS] source [SEP]`. For a prefix LM the target tokens follow in the same row, as another segment that the
source cannot attend to; for a new decoder they are kept apart. Texts that are too long are cut at their end and
counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from unmask.core.errors import InputError
from unmask.core.ragged import concat_ranges, offsets, positions_in_rows
from unmask.core.records import ContinuationTarget, DecoderTarget, Ids, Inputs, Ints, Target
from unmask.data.text.files.encoding import check_surrogates
from unmask.data.text.files.lines import RawRow
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.columns import ColumnChoice, describe_columns, require_columns
from unmask.finetuning.data.dataset import TaskReader, row_by_row
from unmask.finetuning.data.encode import EncodedRows, LengthLimits, Ticker, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.data.table_file import TaskFile, text_cell

PAIRS = (
    ("source", "target"),
    ("src", "tgt"),
    ("input", "output"),
    ("text", "summary"),
    ("document", "summary"),
    ("article", "summary"),
    ("article", "highlights"),
    ("text", "headline"),
    ("text", "title"),
    ("content", "title"),
    ("abstract", "title"),
    ("en", "zh"),
    ("en", "de"),
    ("en", "fr"),
    ("zh", "en"),
    ("de", "en"),
    ("fr", "en"),
    ("question", "answer"),
)
"""Usual names of a source and its target, the most specific first."""
_BATCH = 4096


@dataclass(frozen=True, slots=True)
class Seq2SeqExample:
    """A source text and its target text; the target is empty if unknown."""

    source: str
    target: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The source."""
        return (self.source,)

    def to_json(self) -> dict[str, object]:
        """Source and target; the target only if it is known."""
        return {"source": self.source, "target": self.target} if self.target else {"source": self.source}


def is_seq2seq(first: RawRow) -> bool:
    """Whether the first row of a file has columns for a source and its target, and none for a label."""
    names = {name.lower() for name in first.fields}
    return any(names >= set(pair) for pair in PAIRS[:3]) and "label" not in names


def choose_source_and_target(table: TaskFile, choice: ColumnChoice, truths: bool = True) -> ColumnChoice:
    """The source column and the target column: as named, or by usual names."""
    if not truths:
        return choice
    if len(choice.texts) > 1:
        raise InputError(
            f"--text-columns names one source, found {', '.join(choice.texts)}; --label-column names its target."
        )
    source, target = "".join(choice.texts), choice.label
    require_columns(table, filter(None, (source, target)))
    have = {name.lower(): name for name in table.columns}
    for one, other in ((source.lower(), target.lower()), *PAIRS):
        fits = source.lower() in ("", one) and target.lower() in ("", other)
        if fits and one in have and other in have:
            return ColumnChoice((have[one],), have[other])
    raise InputError(
        f"{table.name}: no two columns have usual names for a source and its target; "
        f"{describe_columns(table.columns)}. Name them: --text-columns SOURCE --label-column TARGET."
    )


def _example(row: RawRow, choice: ColumnChoice, truths: bool) -> Seq2SeqExample:
    source = check_surrogates(text_cell(row, choice.texts[0]), row.where)
    target = check_surrogates(text_cell(row, choice.label), row.where) if truths else ""
    if truths and not target.strip():
        raise InputError(f"{row.where}: the target text ({choice.label!r}) is empty. Add it, or remove the line.")
    return Seq2SeqExample(source, target)


read_seq2seq = TaskReader(choose_source_and_target, row_by_row(_example))
"""Reads sources with their targets."""


@dataclass(frozen=True, slots=True)
class TargetTexts:
    """The target tokens of each row, end token included, and the sources alone for generation; a `TargetColumn`."""

    ids: Ids
    begin: Ints
    """Offsets: the target of row i is `begin[i]:begin[i + 1]`."""
    sources: EncodedRows
    after_source: bool
    """Whether rows hold source and target (prefix LM); the end token is only predicted."""
    tokenizer: Tokenizer = field(repr=False)

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """The targets of some rows."""
        if not len(self.ids):
            return ()
        length = np.diff(self.begin)[rows]
        ids, begin = self.ids[concat_ranges(self.begin[rows], length)], offsets(length)
        if self.after_source:  # each token is predicted at the position of the token before it
            return (ContinuationTarget(concat_ranges(inputs.rows[1:] - length, length), ids),)
        return (DecoderTarget(ids, begin, positions_in_rows(begin)),)


def encode_seq2seq(
    examples: Sequence[Seq2SeqExample],
    tokenizer: Tokenizer,
    limits: LengthLimits,
    max_target_tokens: int,
    after_source: bool,
    tick: Ticker = ignore_progress,
) -> EncodedDataset:
    """All rows as tokens. With `after_source` each target follows its source in the same row."""
    vocab, has_targets = tokenizer.vocab, all(example.target for example in examples)
    left = limits.text_budget(1) - (max_target_tokens - 1 if after_source else 0)
    if left < 1:
        raise InputError(
            f"Rows of {limits.max_length} tokens leave no room for a source before a target of "
            f"{max_target_tokens}. Take a longer --max-length, or a lower --max-new-tokens."
        )
    found = _tokens(examples, tokenizer, tick)
    cut = sum(len(source) > left or len(text) >= max_target_tokens for source, text in found)
    heads = [[vocab.cls, *source[:left], vocab.sep] for source, _ in found]
    texts = [text[: max_target_tokens - 1] for _, text in found] if has_targets else [[] for _ in found]
    sources = _rows(heads, [[] for _ in heads], limits, cut)
    ends = [[*text, vocab.sep] for text in texts] if has_targets else texts
    truth = TargetTexts(_flat(ends), _begin(ends), sources, after_source, tokenizer)
    return EncodedDataset(_rows(heads, texts, limits, cut) if after_source else sources, truth)


def _rows(
    heads: Sequence[Sequence[int]], texts: Sequence[Sequence[int]], limits: LengthLimits, cut: int
) -> EncodedRows:
    """Rows of source and target; the target is another segment that the source cannot attend to."""
    rows = [[*head, *text] for head, text in zip(heads, texts, strict=True)]
    prefix, begin = np.array([len(head) for head in heads], dtype=np.int64), _begin(rows)
    second = positions_in_rows(begin) >= np.repeat(prefix, np.diff(begin))
    seen = prefix if second.any() else np.zeros(0, dtype=np.int64)
    return EncodedRows(_flat(rows), (second & (limits.num_segments > 1)).astype(np.uint8), begin, cut, seen)


def _tokens(
    examples: Sequence[Seq2SeqExample], tokenizer: Tokenizer, tick: Ticker
) -> list[tuple[list[int], list[int]]]:
    """The tokens of every source and of every target."""
    encoder, found = Encoder(tokenizer), []
    for first in range(0, len(examples), _BATCH):
        some = examples[first : first + _BATCH]
        sources, texts = (
            encoder.encode_ids(part) for part in zip(*((one.source, one.target) for one in some), strict=True)
        )
        found += list(zip(sources, texts, strict=True))
        tick(len(found))
    return found


def _flat(rows: Sequence[Sequence[int]]) -> Ids:
    return np.fromiter(chain.from_iterable(rows), np.int32)


def _begin(rows: Sequence[Sequence[int]]) -> Ints:
    return offsets(np.fromiter(map(len, rows), np.int64, len(rows)))
