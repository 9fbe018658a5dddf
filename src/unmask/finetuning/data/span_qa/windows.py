"""Sliding windows with doc stride: rows `[CLS] question [SEP] window of the passage [SEP]`.

A passage longer than a row is read through overlapping windows and never truncated. The answer is the target where a
window holds all of it; every other window has [CLS] as its target (Devlin et al., 2018; run_squad.py), which is how the
model learns what is no answer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unmask.core.ragged import offsets
from unmask.core.records import AnswerSpan, Bits, Ids, Inputs, Ints, Target
from unmask.data.tokenize.encoder import EncodedText, Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import EncodedRows, LengthLimits, Ticker, ignore_progress
from unmask.finetuning.data.encoded_dataset import NO_TARGETS, EncodedDataset, SpanColumn, TargetColumn
from unmask.finetuning.data.span_qa.questions import QAExample

MAX_QUESTION_TOKENS = 64
"""Longer questions are truncated to this many tokens."""
DOC_STRIDE = 128
"""The distance between the starts of two windows; smaller where rows are short."""
_BATCH = 1024


@dataclass(frozen=True, slots=True)
class WindowSizes:
    """The split of a row between question and passage window."""

    max_question: int
    """The longest question."""
    max_window: int
    """Tokens of a row for question and window together."""
    stride: int

    @staticmethod
    def of(limits: LengthLimits) -> WindowSizes:
        """A question takes at most half of a row, and windows always overlap."""
        text = limits.text_budget(2)
        return WindowSizes(min(MAX_QUESTION_TOKENS, text // 2), text, max(1, min(DOC_STRIDE, limits.max_length // 3)))

    def window_starts(self, tokens: int, question: int) -> list[int]:
        """The first token of each window over a passage, given the lengths of passage and question."""
        window = self.max_window - question
        step = min(self.stride, window)
        return list(range(0, max(tokens - window, 0) + step, step))


@dataclass(frozen=True, slots=True, eq=False)
class PassageWindows:
    """The part of a passage that each row holds, and the targets of the rows; a `TargetColumn`."""

    question: Ints
    """The question of each row; rows of one question are adjacent, in the order of the passage."""
    first_token: Ints
    """The position of the window in its row."""
    begin: Ints
    """The passage token at that position."""
    count: Ints
    """The passage tokens of each row."""
    passages: tuple[EncodedText, ...]
    """The tokens of each question's passage, with their character offsets."""
    targets: TargetColumn = NO_TARGETS

    def at(self, rows: Ints, inputs: Inputs, groups: Ints) -> tuple[Target, ...]:
        """The targets of some rows."""
        return self.targets.at(rows, inputs, groups)


def find_answer_tokens(passage: EncodedText, start: int, end: int) -> tuple[int, int]:
    """The first and the last token that overlap a range of characters; (0, -1) if none does."""
    found = np.flatnonzero((passage.starts < end) & (passage.ends > start))
    return (int(found[0]), int(found[-1])) if len(found) else (0, -1)


def piece_between(text: str, passage: EncodedText, first: int, last: int) -> tuple[int, str]:
    """The text from one token to another, and its offset; combining marks after the last token are included."""
    start, end = int(passage.starts[first]), int(passage.ends[last])
    while end > start and unicodedata.category(text[end : end + 1] or " ").startswith("M"):
        end += 1
    return start, text[start:end]


def encode_windows(
    examples: ExampleSet[QAExample],
    name: str,
    tokenizer: Tokenizer,
    limits: LengthLimits,
    tick: Ticker = ignore_progress,
) -> EncodedDataset:
    """All questions as rows of windows, with targets if all answers are known. `name` is that of the head."""
    sizes, encoder = WindowSizes.of(limits), Encoder(tokenizer)
    asked, cut = _questions(examples, encoder, sizes.max_question)
    passages = _passages(examples, encoder, tick)
    windows = _windows(asked, passages, sizes)
    rows = _add_special_tokens(asked, windows, tokenizer.vocab, limits.num_segments)
    if not all(question.has_target for question in examples.examples):
        return EncodedDataset(rows, windows, notes=_notes(windows, sizes, cut, 0))
    spans, lost = _spans(examples, windows, name)
    return EncodedDataset(rows, replace(windows, targets=spans), notes=_notes(windows, sizes, cut, lost))


def _questions(examples: ExampleSet[QAExample], encoder: Encoder, most: int) -> tuple[list[Ids], int]:
    """The tokens of each question, and how many were truncated."""
    ids = encoder.encode_ids([one.question for one in examples.examples])
    return [np.array(some[:most], dtype=np.int32) for some in ids], sum(len(some) > most for some in ids)


def _passages(examples: ExampleSet[QAExample], encoder: Encoder, tick: Ticker) -> tuple[EncodedText, ...]:
    """The tokens of each question's passage; each distinct passage is encoded once."""
    known: dict[str, EncodedText] = {}
    found: list[EncodedText] = []
    for number, question in enumerate(examples.examples, start=1):
        if question.passage not in known:
            known[question.passage] = encoder.encode_text(question.passage)
        found.append(known[question.passage])
        if number % _BATCH == 0 or number == len(examples):
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
    """Rows of question and window with special tokens."""
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


def _spans(examples: ExampleSet[QAExample], windows: PassageWindows, name: str) -> tuple[SpanColumn, int]:
    """The answer span in each row, and how many answers fit into no window."""
    ends = [_tokens_of(question, windows.passages[i]) for i, question in enumerate(examples.examples)]
    first, last = np.array(ends, dtype=np.int64).reshape(-1, 2)[windows.question].T
    holds = (first <= last) & (windows.begin <= first) & (last < windows.begin + windows.count)
    shift = windows.first_token - windows.begin
    wanted = sum(bool(question.answers) for question in examples.examples)
    lost = wanted - len(np.unique(windows.question[holds]))
    return SpanColumn(AnswerSpan(name, *(np.where(holds, end + shift, 0) for end in (first, last)))), lost


def _tokens_of(question: QAExample, passage: EncodedText) -> tuple[int, int]:
    """The tokens of the first answer, which is the target."""
    if not question.answers:
        return 0, -1
    return find_answer_tokens(passage, question.answers[0].start, question.answers[0].end)


def _notes(windows: PassageWindows, sizes: WindowSizes, cut: int, lost: int) -> tuple[str, ...]:
    """Sentences about long inputs for the user."""
    longer = int((np.bincount(windows.question) > 1).sum())
    notes = []
    if longer:
        notes.append(
            f"{longer:,} of {len(windows.passages):,} questions have a passage longer than a row; it is read "
            f"through sliding windows with a stride of {sizes.stride} tokens: {len(windows.question):,} rows in all"
        )
    if cut:
        notes.append(f"{cut:,} questions were truncated to {sizes.max_question} tokens")
    if lost:
        notes.append(
            f"note: {lost:,} answers fit into no window and are not trained on; a longer --max-length may help"
        )
    return tuple(notes)
