"""Law 1, Restore: from an instance's targets the original ids come back exactly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from law_subjects import all_rows, planned
from law_texts import SPECS, Ground, texts

CASES = 10_000
"""A case is one row under one rule; so many are asked of every kind of vocabulary."""


@pytest.mark.parametrize("kind", SPECS)
def test_corruption_loses_nothing_that_its_targets_do_not_hold(kind: str, grounds: dict[str, Ground]) -> None:
    ground, cases = grounds[kind], Counter[str]()

    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    @given(texts(), st.sampled_from((8, 9, 13, 24, 40, 128)), st.integers(0, 2**64 - 1))
    def law(written: tuple[str, ...], length: int, seed: int) -> None:
        corpus = ground.corpus(written)
        for plan, found in planned(corpus, length, seed):
            for subject in found if len(plan) else ():
                example, instance = subject.batch(corpus, plan, all_rows(plan), seed)
                ids, rows = subject.task.corrupt.restore(instance, corpus.vocab)
                assert np.array_equal(ids, example.ids), subject.name
                assert np.array_equal(rows, example.rows), subject.name
                cases[subject.name] += len(example)

    law()
    assert cases.total() >= CASES
    assert min(cases.values()) > 0
