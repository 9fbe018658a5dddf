"""Sources and the texts to be written for them, as rows of tokens: `[CLS] source [SEP]`, with or without a text behind.

What arrives: questions and a tokenizer. What leaves: an `Exercise` that knows the sources alone as well.
What never happens here: a text that does not fit. What is too long is cut at its end, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from unmask.core.errors import InputError
from unmask.core.ragged import concat_ranges, offsets, positions_in_rows
from unmask.core.records import ContinuationTarget, DecoderTarget, Ids, Inputs, Ints, Target
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.encode import EncodedRows, LengthLimits
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.data.seq2seq import Seq2SeqExample
from unmask.finetuning.tasks.protocol import Ticker, ignore_progress

_BATCH = 4096


@dataclass(frozen=True, slots=True)
class TargetTexts:
    """The text of each row as tokens, with its end; none where texts are unknown.

    Beside them the sources alone, for when a text is to be written, and what spells it.
    """

    ids: Ids
    begin: Ints
    """Offsets: the text of row i is `begin[i]:begin[i + 1]`."""
    sources: EncodedRows
    after_source: bool
    """Whether the texts stand behind their sources in the rows, all but their ends."""
    tokenizer: Tokenizer = field(repr=False)

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """The texts of some rows."""
        if not len(self.ids):
            return ()
        length = np.diff(self.begin)[rows]
        ids, begin = self.ids[concat_ranges(self.begin[rows], length)], offsets(length)
        if (
            self.after_source
        ):  # the first token is said where the source ends, each other where the one before it stands
            return (ContinuationTarget(concat_ranges(inputs.rows[1:] - length, length), ids),)
        return (DecoderTarget(ids, begin, positions_in_rows(begin)),)


def encode_seq2seq(
    questions: Sequence[Seq2SeqExample],
    tokenizer: Tokenizer,
    limits: LengthLimits,
    max_target_tokens: int,
    after_source: bool,
    tick: Ticker = ignore_progress,
) -> EncodedDataset:
    """All rows as tokens. `behind`: each text, of at most `most` tokens with its end, shares the row of its source."""
    vocab, told = tokenizer.vocab, all(question.target for question in questions)
    left = limits.text_budget(1) - (max_target_tokens - 1 if after_source else 0)
    if left < 1:
        raise InputError(
            f"Rows of {limits.max_length} tokens leave no room for a source before a text of {max_target_tokens}. Take a longer --max-length, "
            "or write less."
        )
    found = _tokens(questions, tokenizer, tick)
    cut = sum(len(source) > left or len(text) >= max_target_tokens for source, text in found)
    heads = [[vocab.cls, *source[:left], vocab.sep] for source, _ in found]
    texts = [text[: max_target_tokens - 1] for _, text in found] if told else [[] for _ in found]
    sources = _rows(heads, [[] for _ in heads], limits, cut)
    ends = [[*text, vocab.sep] for text in texts] if told else texts
    truth = TargetTexts(_flat(ends), _begin(ends), sources, after_source, tokenizer)
    return EncodedDataset(_rows(heads, texts, limits, cut) if after_source else sources, truth)


def _rows(heads: Sequence[Sequence[int]], texts: Sequence[Sequence[int]], room: LengthLimits, cut: int) -> EncodedRows:
    """Sources with their texts behind them: another segment, which the source does not see."""
    rows = [[*head, *text] for head, text in zip(heads, texts, strict=True)]
    prefix, begin = np.array([len(head) for head in heads], dtype=np.int64), _begin(rows)
    second = positions_in_rows(begin) >= np.repeat(prefix, np.diff(begin))
    seen = prefix if second.any() else np.zeros(0, dtype=np.int64)
    return EncodedRows(_flat(rows), (second & (room.num_segments > 1)).astype(np.uint8), begin, cut, seen)


def _tokens(
    questions: Sequence[Seq2SeqExample], tokenizer: Tokenizer, tick: Ticker
) -> list[tuple[list[int], list[int]]]:
    """The tokens of every source and of every text."""
    encoder, found = Encoder(tokenizer), []
    for first in range(0, len(questions), _BATCH):
        some = questions[first : first + _BATCH]
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
