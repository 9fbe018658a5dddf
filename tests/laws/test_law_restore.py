"""Law 1, Restore: from an instance's targets the original ids come back exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from law_subjects import all_rows, plan_of, planned, subjects
from law_texts import SPECS, Ground, texts

from unmask.core.records import RowBatch
from unmask.core.rng import Key
from unmask.data.corrupt.protocol import Corruption
from unmask.data.input_formats.contiguous import ContiguousStreams
from unmask.data.input_formats.dialogues import Dialogues
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.pairs import Negative, SegmentGrain, SegmentPairs
from unmask.data.input_formats.row_plan import InputFormat, build_rows
from unmask.data.input_formats.single_sentences import SingleSentences
from unmask.data.tokenize.vocab import Vocab

CASES = 10_000
"""A case is one row under one rule; so many are asked of every kind of vocabulary."""
BUILDERS: tuple[InputFormat, ...] = (
    Packed(DocumentBoundary.ACROSS),
    Packed(DocumentBoundary.BORDERS),
    SegmentPairs(Negative.BOTH),
    SegmentPairs(Negative.RANDOM, SegmentGrain.SENTENCE),
    SingleSentences(),
    ContiguousStreams(1),
    Dialogues(),
)
"""Rows of every other kind: several documents, several segments, no special tokens at all."""


@pytest.mark.parametrize("kind", SPECS)
def test_corruption_loses_nothing_that_its_targets_do_not_hold(kind: str, grounds: dict[str, Ground]) -> None:
    ground, cases = grounds[kind], Counter[str]()

    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    @given(texts(), st.sampled_from((8, 9, 13, 24, 40, 128)), st.integers(0, 2**64 - 1))
    def law(written: tuple[str, ...], length: int, seed: int) -> None:
        corpus = ground.corpus(written)
        for plan, found in planned(corpus, length, seed):
            for subject in found if len(plan) else ():
                example, key = subject.rows(corpus, plan, all_rows(plan), seed)
                cases[subject.name] += restored(subject.task.corruption, example, corpus.vocab, key)

    law()
    assert cases.total() >= CASES
    assert min(cases[subject.name] for subject in subjects()) > 0


@pytest.mark.parametrize("builder", BUILDERS, ids=repr)
def test_it_does_so_on_rows_of_any_kind_and_with_hardly_a_sentinel(
    builder: InputFormat, grounds: dict[str, Ground]
) -> None:
    cases = Counter[str]()

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(texts(), st.sampled_from(list(SPECS)), st.sampled_from((8, 24, 128)), st.integers(2, 4), st.integers(0, 99))
    def law(written: tuple[str, ...], kind: str, length: int, sentinels: int, seed: int) -> None:
        corpus = grounds[kind].corpus(written)
        if isinstance(builder, ContiguousStreams) and corpus.manifest.counts.tokens < length:
            return
        vocab = replace(corpus.vocab, sentinels=corpus.vocab.sentinels[:sentinels])
        plan = plan_of(builder, corpus, length, seed)
        example = build_rows(corpus, plan, all_rows(plan), builder.template, vocab)
        key = Key.of(seed, "draw").fold_in(all_rows(plan))
        for subject in subjects():
            cases[subject.name] += restored(subject.task.corruption, example, vocab, key)

    law()
    assert cases.total() >= CASES / 10


def restored(corrupt: Corruption, example: RowBatch, vocab: Vocab, key: Key) -> int:
    """Hold rows to the law; returns how many there were."""
    before = example.ids.copy()
    ids, rows = corrupt.restore(corrupt(example, vocab, key), vocab)
    assert ids.dtype == np.int32
    assert np.array_equal(ids, before), corrupt
    assert np.array_equal(rows, example.rows), corrupt
    return len(example)
