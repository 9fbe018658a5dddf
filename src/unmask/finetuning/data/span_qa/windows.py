"""Questions with their passages as rows of tokens: `[CLS] question [SEP] a window of the passage [SEP]`.

What arrives: questions, a tokenizer, and how long a row may be. What leaves: an `Exercise` with one row for each
window, and `Windows`, which know the characters behind every token.
What never happens here: a passage that is cut. One that is longer than a row is read through windows that overlap.

The answer is learned where a window holds all of it. Every other window points at [CLS] and is learned from, too, as
BERT does (Devlin et al., 2018; run_squad.py): that is where a network learns what is no answer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unmask.core.ragged import offsets
from unmask.core.records import Bits, Ids, Inputs, Ints, Target
from unmask.data.tokenize.encoder import EncodedText, Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import EncodedRows, LengthLimits
from unmask.finetuning.data.encoded_dataset import NO_TARGETS, EncodedDataset, SpanColumn, TargetColumn
from unmask.finetuning.data.span_qa.questions import QAExample
from unmask.finetuning.tasks.protocol import Ticker, ignore_progress

MAX_QUESTION_TOKENS = 64
"""The most tokens that are kept of a question."""
DOC_STRIDE = 128
"""A new window begins every so many tokens, or more often where rows are short."""
_BATCH = 1024


@dataclass(frozen=True, slots=True)
class WindowSizes:
    """How rows are shared out between question and passage."""

    max_question: int
    """The most tokens of a question."""
    max_window: int
    """The tokens of a row that are left for question and window together."""
    stride: int

    @staticmethod
    def of(room: LengthLimits) -> WindowSizes:
        """A question takes at most half of a row, and windows overlap by at least a part."""
        text = room.text_budget(2)
        return WindowSizes(min(MAX_QUESTION_TOKENS, text // 2), text, max(1, min(DOC_STRIDE, room.max_length // 3)))

    def window_starts(self, tokens: int, question: int) -> list[int]:
        """Where windows over so many tokens begin, beside a question of that length."""
        window = self.max_window - question
        step = min(self.stride, window)
        return list(range(0, max(tokens - window, 0) + step, step))


@dataclass(frozen=True, slots=True, eq=False)
class PassageWindows:
    """Which part of which passage each row shows; and the truth about the rows, if it is told."""

    question: Ints
    """The question that each row belongs to; rows of one question stand together, in the order of the passage."""
    first_token: Ints
    """Where the passage begins in each row."""
    begin: Ints
    """The token of the passage that stands there."""
    count: Ints
    """How many tokens of the passage each row shows."""
    passages: tuple[EncodedText, ...]
    """The tokens of the passage of each question, with the characters that they cover."""
    targets: TargetColumn = NO_TARGETS

    def at(self, rows: Ints, inputs: Inputs, items: Ints) -> tuple[Target, ...]:
        """The truth about some rows."""
        return self.targets.at(rows, inputs, items)


def find_answer_tokens(passage: EncodedText, start: int, end: int) -> tuple[int, int]:
    """The first and the last token that cover some of these characters; (0, -1) if no token does."""
    found = np.flatnonzero((passage.starts < end) & (passage.ends > start))
    return (int(found[0]), int(found[-1])) if len(found) else (0, -1)


def piece_between(text: str, passage: EncodedText, first: int, last: int) -> tuple[int, str]:
    """The piece of the text from one token to another, and where it begins.

    Accents that a tokenizer strips belong to no token; those behind the last character stay with it.
    """
    start, end = int(passage.starts[first]), int(passage.ends[last])
    while end > start and unicodedata.category(text[end : end + 1] or " ").startswith("M"):
        end += 1
    return start, text[start:end]


def encode_windows(
    sheet: ExampleSet[QAExample], name: str, tokenizer: Tokenizer, limits: LengthLimits, tick: Ticker = ignore_progress
) -> EncodedDataset:
    """All questions as rows, with the truth if the sheet tells it for each. `name` is that of the head."""
    sizes, encoder = WindowSizes.of(limits), Encoder(tokenizer)
    asked, cut = _questions(sheet, encoder, sizes.max_question)
    passages = _passages(sheet, encoder, tick)
    windows = _windows(asked, passages, sizes)
    rows = _add_special_tokens(asked, windows, tokenizer.vocab, limits.num_segments)
    if not all(question.has_target for question in sheet.examples):
        return EncodedDataset(rows, windows, notes=_notes(windows, sizes, cut, 0))
    spans, lost = _spans(sheet, windows, name)
    return EncodedDataset(rows, replace(windows, targets=spans), notes=_notes(windows, sizes, cut, lost))


def _questions(sheet: ExampleSet[QAExample], encoder: Encoder, most: int) -> tuple[list[Ids], int]:
    """The tokens of each question, and how many were cut."""
    ids = encoder.encode_ids([one.question for one in sheet.examples])
    return [np.array(some[:most], dtype=np.int32) for some in ids], sum(len(some) > most for some in ids)


def _passages(sheet: ExampleSet[QAExample], encoder: Encoder, tick: Ticker) -> tuple[EncodedText, ...]:
    """The tokens of each question's passage; passages that are asked about again are encoded once."""
    known: dict[str, EncodedText] = {}
    found: list[EncodedText] = []
    for number, question in enumerate(sheet.examples, start=1):
        if question.passage not in known:
            known[question.passage] = encoder.encode_text(question.passage)
        found.append(known[question.passage])
        if number % _BATCH == 0 or number == len(sheet):
            tick(number)
    return tuple(found)


def _windows(asked: Sequence[Ids], passages: tuple[EncodedText, ...], sizes: WindowSizes) -> PassageWindows:
    length = np.array([len(ids) for ids in asked], dtype=np.int64)
    tokens = np.array([len(passage.ids) for passage in passages], dtype=np.int64)
    begins = [sizes.window_starts(*both) for both in zip(tokens.tolist(), length.tolist(), strict=True)]
    question = np.repeat(np.arange(len(asked)), [len(some) for some in begins])
    begin = np.array([one for some in begins for one in some], dtype=np.int64)
    count = np.minimum(tokens[question] - begin, sizes.max_window - length[question])
    return PassageWindows(question, length[question] + 2, begin, count, passages)


def _add_special_tokens(asked: Sequence[Ids], windows: PassageWindows, vocab: Vocab, segments: int) -> EncodedRows:
    """Place the special tokens around question and window."""
    rows = offsets(windows.first_token + windows.count + 1)
    ids = np.concatenate(list(_ids(asked, windows, vocab)))
    second: Bits = np.full(len(ids), min(1, max(segments - 1, 0)), dtype=np.uint8)
    within = np.arange(len(ids)) - np.repeat(rows[:-1], np.diff(rows))
    second[within < np.repeat(windows.first_token, np.diff(rows))] = 0
    return EncodedRows(ids, second, rows, num_truncated=0)


def _ids(asked: Sequence[Ids], windows: PassageWindows, vocab: Vocab) -> Iterator[Ids]:
    first, between = np.array([vocab.cls], dtype=np.int32), np.array([vocab.sep], dtype=np.int32)
    ends = windows.begin + windows.count
    for row, question in enumerate(windows.question.tolist()):
        yield first
        yield asked[question]
        yield between
        yield windows.passages[question].ids[windows.begin[row] : ends[row]]
        yield between


def _spans(sheet: ExampleSet[QAExample], windows: PassageWindows, name: str) -> tuple[SpanColumn, int]:
    """The ends of the answer in each row, and how many answers no row holds."""
    ends = [_tokens_of(question, windows.passages[i]) for i, question in enumerate(sheet.examples)]
    first, last = np.array(ends, dtype=np.int64).reshape(-1, 2)[windows.question].T
    holds = (first <= last) & (windows.begin <= first) & (last < windows.begin + windows.count)
    shift = windows.first_token - windows.begin
    wanted = sum(bool(question.answers) for question in sheet.examples)
    lost = wanted - len(np.unique(windows.question[holds]))
    return SpanColumn(name, np.where(holds, first + shift, 0), np.where(holds, last + shift, 0)), lost


def _tokens_of(question: QAExample, passage: EncodedText) -> tuple[int, int]:
    """The tokens of the answer that is learned."""
    if not question.answers:
        return 0, -1
    return find_answer_tokens(passage, question.answers[0].start, question.answers[0].end)


def _notes(windows: PassageWindows, sizes: WindowSizes, cut: int, lost: int) -> tuple[str, ...]:
    """What became of long inputs, in sentences."""
    longer = int((np.bincount(windows.question) > 1).sum())
    said = []
    if longer:
        said.append(
            f"{longer:,} of {len(windows.passages):,} questions have a passage that is longer than a row; it is read "
            f"through windows, a new one every {sizes.stride} tokens: {len(windows.question):,} rows in all"
        )
    if cut:
        said.append(f"{cut:,} questions were cut to {sizes.max_question} tokens")
    if lost:
        said.append(f"note: {lost:,} answers fit into no window and are not learned; a longer --max-length may help")
    return tuple(said)
