"""A corpus of invented tokens, large enough for shares to be measured on, and the rows of an instance one by one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import numpy as np
from law_subjects import Subject, all_rows, plan_of, subjects
from law_texts import corpus_of

from unmask.core.ragged import concat_ranges
from unmask.core.records import (
    Cloze,
    DecoderTarget,
    Ids,
    InputsAndTargets,
    Ints,
    NextToken,
    PermutedTarget,
    RowClass,
    Spans,
    Target,
    TokenDoc,
    TokenUnits,
    UnitKind,
)
from unmask.data.corpus.corpus import Corpus
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.vocab import Vocab

FIRST, WORDS = 1000, 3000
"""The first ordinary id, and how many words there are of each length (1, 2 and 3 tokens)."""
SIZE = FIRST + 6 * WORDS + 200
_FIRST_OF = FIRST + WORDS * np.array([0, 0, 1, 3])
"""The first token of the first word of each length."""


def vocabulary() -> Vocab:
    """Every word has two similar ones of its own length, and no token belongs to two words."""
    words = [tuple(row.tolist()) for length in (1, 2, 3) for row in _tokens(length)]
    near = [[number ^ 1, number ^ 2] for number in range(len(words))]
    ordinary, sentinels = np.arange(FIRST, SIZE - 200, dtype=np.int32), np.arange(SIZE - 200, SIZE, dtype=np.int32)
    return Vocab(SIZE, 1, 2, 3, 0, 4, ordinary, sentinels, SimilarWords.of(words, near))


def invented(documents: int, seed: int = 5) -> Corpus:
    """Words of 1 to 3 tokens in sentences of 4 to 40 words in documents of 1 to 60 sentences, in two shards."""
    rng = np.random.default_rng(seed)
    made = [_document(rng) for _ in range(documents)]
    return corpus_of([made[: documents // 3], made[documents // 3 :]], vocabulary())


def word_numbers(ids: Ids, heads: Ints) -> Ints:
    """Which of the invented words each group of tokens is (groups begin at `heads`); -1 for none, or a part of one."""
    size = np.diff(heads, append=len(ids))
    ordered = np.append(True, np.diff(ids) == 1)
    ordered[heads] = True
    length = np.clip(size, 1, 3)
    place = ids[heads] - _FIRST_OF[length]
    known = (place >= 0) & (place < length * WORDS) & (place % length == 0) & (size <= 3)
    known &= np.logical_and.reduceat(ordered, heads)
    return np.where(known, (length - 1) * WORDS + place // length, -1)


def in_rows(instance: InputsAndTargets) -> list[bytes]:
    """Everything that an instance says about each row, with positions counted from the row's own beginning."""
    return [b"|".join(_row(instance, row)) for row in range(len(instance.inputs.rows) - 1)]


def digests(corpus: Corpus, length: int, seed: int) -> str:
    """One digest for each subject of all its rows, as JSON: what another process is held against."""
    return json.dumps({subject.name: _digest(subject, corpus, length, seed) for subject in subjects()})


def _digest(subject: Subject, corpus: Corpus, length: int, seed: int) -> str:
    plan = plan_of(subject.task.examples, corpus, length, seed)
    rows = in_rows(subject.batch(corpus, plan, all_rows(plan), seed))
    return hashlib.sha256(b"\n".join(rows)).hexdigest()


def _row(instance: InputsAndTargets, row: int) -> Iterator[bytes]:
    inputs = instance.inputs
    start, end = int(inputs.rows[row]), int(inputs.rows[row + 1])
    for values in (inputs.ids, inputs.segment, inputs.document, inputs.position):
        yield values[start:end].tobytes()
    for target in instance.targets:
        yield from (np.asarray(part).tobytes() for part in _asked(target, row, start, end))


def _asked(target: Target, row: int, start: int, end: int) -> Iterator[np.ndarray]:
    match target:
        case Cloze(positions, answers, spans):
            here, drawn = (positions >= start) & (positions < end), (spans.start >= start) & (spans.start < end)
            yield from (positions[here] - start, answers[here], spans.start[drawn] - start, spans.end[drawn] - start)
        case NextToken(weights):
            yield weights[start:end]
        case DecoderTarget(ids, rows, position):
            yield from (ids[rows[row] : rows[row + 1]], position[rows[row] : rows[row + 1]])
        case PermutedTarget(rank, positions, answers):
            here = (positions >= start) & (positions < end)
            yield from (rank[start:end], positions[here] - start, answers[here])
        case RowClass(_, value):
            yield value[row]


def _tokens(length: int) -> Ints:
    """The words of one length, a line each."""
    return np.arange(length * WORDS).reshape(WORDS, length) + int(_FIRST_OF[length])


def _document(rng: np.random.Generator) -> TokenDoc:
    """Every sentence has a phrase of its first two words and an entity of its third and fourth."""
    sizes = rng.integers(4, 41, rng.integers(1, 61))
    first = np.cumsum(sizes) - sizes
    lengths = rng.integers(1, 4, sizes.sum())
    ids = concat_ranges(_FIRST_OF[lengths] + rng.integers(0, WORDS, len(lengths)) * lengths, lengths).astype(np.int32)
    end = np.cumsum(lengths)
    start = end - lengths
    spans = {
        UnitKind.WORD: Spans(start, end),
        UnitKind.PHRASE: Spans(start[first], end[first + 1]),
        UnitKind.ENTITY: Spans(start[first + 2], end[first + 3]),
        UnitKind.SENTENCE: Spans(start[first], end[first + sizes - 1]),
    }
    return TokenDoc(ids, TokenUnits.of(len(ids), spans))
