"""Law 3, Budget and borders: what may be chosen, how much of it, and what may stand in its place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from law_subjects import Subject, all_rows, plan_of, subjects
from law_texts import SPECS, Ground, texts

from unmask.core.records import Cloze, DecoderTarget, InputsAndTargets, PermutedTarget, RowBatch, UnitFlag, UnitKind
from unmask.data.corrupt.masking import MaskTokens, OneOfSelectors, RandomTokens, Selector, WholeUnits
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.tokenize.vocab import Vocab

SUBJECTS = subjects()
CLOZES = [subject for subject in SUBJECTS if isinstance(subject.task.corruption, MaskTokens)]
Span = tuple[int, int]
holds = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
rows = given(texts(), st.sampled_from(list(SPECS)), st.sampled_from((8, 15, 40, 128)), st.integers(0, 2**32))


def made(
    subject: Subject, ground: Ground, written: tuple[str, ...], length: int, seed: int
) -> tuple[RowBatch, InputsAndTargets]:
    corpus = ground.corpus(written)
    plan = plan_of(subject.task.examples, corpus, length, seed)
    example, key = subject.rows(corpus, plan, all_rows(plan), seed)
    return example, subject.task.corruption(example, corpus.vocab, key)


@pytest.mark.parametrize("subject", CLOZES, ids=lambda subject: subject.name)
def test_a_selection_keeps_to_its_budget_and_to_borders(subject: Subject, grounds: dict[str, Ground]) -> None:
    @holds
    @rows
    def law(written: tuple[str, ...], kind: str, length: int, seed: int) -> None:
        example, instance = made(subject, grounds[kind], written, length, seed)
        cloze = instance.targets[0]
        assert isinstance(cloze, Cloze)
        spans = list(zip(cloze.spans.start.tolist(), cloze.spans.end.tolist(), strict=True))
        assert cloze.positions.tolist() == [at for start, end in spans for at in range(start, end)]
        assert not example.protected[cloze.positions].any()
        for first, behind in zip(example.rows[:-1].tolist(), example.rows[1:].tolist(), strict=True):
            drawn = [span for span in spans if first <= span[0] < behind]
            assert all(end <= behind for _, end in drawn)
            select = _selection(subject)
            assert any(_keeps(one, example, first, behind, drawn) for one in _alternatives(select))

    law()


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_special_tokens_stay_and_nothing_but_text_stands_in_for_text(
    subject: Subject, grounds: dict[str, Ground]
) -> None:
    @holds
    @rows
    def law(written: tuple[str, ...], kind: str, length: int, seed: int) -> None:
        vocab = grounds[kind].vocab
        example, instance = made(subject, grounds[kind], written, length, seed)
        markers = vocab.sentinels.tolist() if isinstance(subject.task.corruption, SpanCorruption) else ()
        allowed = {vocab.mask, vocab.unk, vocab.cls, vocab.sep, *vocab.ordinary.tolist(), *markers}
        for row in range(len(example)):
            before = example.ids[example.rows[row] : example.rows[row + 1]].tolist()
            after = instance.inputs.ids[instance.inputs.rows[row] : instance.inputs.rows[row + 1]].tolist()
            assert _specials(after, vocab) == _specials(before, vocab)
            assert set(after) <= allowed
            assert after.count(vocab.unk) <= before.count(vocab.unk)
            assert before[0] != vocab.cls or after[0] == vocab.cls
            assert before[-1] != vocab.sep or after[-1] == vocab.sep
        _asks_something(instance, example)

    law()


def _asks_something(instance: InputsAndTargets, example: RowBatch) -> None:
    """Every row that has text has a question, and no question is about a special token."""
    match instance.targets[0]:
        case Cloze(positions, _, _) | PermutedTarget(_, positions, _):
            counts = np.histogram(positions, example.rows)[0]
            assert (counts > 0).all()
            assert not example.protected[positions].any()
        case DecoderTarget(_, target_rows, _):
            assert (np.diff(target_rows) > 0).all()


def _keeps(select: Selector, example: RowBatch, first: int, behind: int, drawn: list[Span]) -> bool:
    """Whether the spans of one row are what this selection may choose."""
    size = behind - first
    chosen = sum(end - start for start, end in drawn)
    free = int((~example.protected[first:behind]).sum())
    if isinstance(select, RandomTokens):
        budget = min(select.max_predictions, max(1, round(select.rate * size)))
        return chosen == min(budget, free) and all(end - start == 1 for start, end in drawn)
    assert isinstance(select, WholeUnits)
    units = list(_units(example, select.layer, first, behind))
    runs = [[unit for unit in units if start <= unit[0] and unit[1] <= end] for start, end in drawn]
    whole = all(run and (run[0][0], run[-1][1]) == span for run, span in zip(runs, drawn, strict=True))
    if len(select.run_lengths) == 1:
        budget = max(1, round(select.rate * size))
        smallest = min(end - start for start, end in units)
        fits = chosen <= budget or (len(drawn) == 1 and chosen == smallest)
        return whole and fits and all(len(run) == 1 for run in runs)
    apart = all(left[1] < right[0] for left, right in pairwise(drawn))
    exceeds = chosen - max(end - start for start, end in drawn) >= select.rate * size
    inside = select.inside is not UnitKind.SENTENCE or not any(_crosses(example, span) for span in drawn)
    return whole and apart and inside and not exceeds and all(len(run) <= len(select.run_lengths) for run in runs)


def _units(example: RowBatch, layer: UnitKind, first: int, behind: int) -> Iterator[Span]:
    """The units of one row by a readable loop: those of the layer, and the words outside of it."""
    own = {UnitKind.WORD: 0, UnitKind.PHRASE: UnitFlag.IN_PHRASE, UnitKind.ENTITY: UnitFlag.IN_ENTITY}[layer]
    begins = {UnitKind.WORD: UnitFlag.WORD, UnitKind.PHRASE: UnitFlag.PHRASE, UnitKind.ENTITY: UnitFlag.ENTITY}[layer]
    bits, start = example.units.bits.tolist(), first
    for at in range(first + 1, behind + 1):
        opens = at == behind or bits[at] & begins or (bits[at] & UnitFlag.WORD and not bits[at] & own)
        if opens:
            assert at == behind or bits[at] & UnitFlag.WORD, "a unit begins inside a word"
            if not example.protected[start]:
                yield start, at
            start = at


def _crosses(example: RowBatch, span: Span) -> bool:
    return bool((example.units.bits[span[0] + 1 : span[1]] & UnitFlag.SENTENCE).any())


def _selection(subject: Subject) -> Selector:
    assert isinstance(subject.task.corruption, MaskTokens)
    return subject.task.corruption.select


def _alternatives(select: Selector) -> tuple[Selector, ...]:
    return select.selectors if isinstance(select, OneOfSelectors) else (select,)


def _specials(ids: list[int], vocab: Vocab) -> list[int]:
    return [token for token in ids if token in (vocab.cls, vocab.sep)]
