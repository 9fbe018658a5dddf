"""Law 2, Address: row i is the same for any batch, order, rank and process, and after a resume."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from itertools import chain
from pathlib import Path

import law_corpus
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from law_corpus import digests, in_rows, invented
from law_subjects import Subject, plan_of, subjects

from unmask.core.records import Ints
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.input_formats.row_plan import (
    DynamicMasking,
    EpochSampler,
    MaskingMode,
    RowPlan,
    StaticMasking,
    build_rows,
)

LENGTH, SEED = 64, 11
BATCH, STEPS = 8, 6
every_subject = pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)
drawing_subject = pytest.mark.parametrize(
    "subject", [one for one in subjects() if one.task.corruption != NoCorruption()], ids=lambda subject: subject.name
)


@cache
def ground() -> Corpus:
    return invented(documents=4)


@cache
def reference(subject: Subject) -> tuple[RowPlan, list[bytes]]:
    """What each visit of the first steps sees, computed in one batch. The last of them lie in the second pass."""
    plan = plan_of(subject.task.examples, ground(), LENGTH, SEED)
    return plan, seen(subject, plan, first_visits(plan))


def first_visits(plan: RowPlan) -> Ints:
    return np.arange(len(plan) - BATCH * STEPS // 2, len(plan) + BATCH * STEPS // 2)


def seen(subject: Subject, plan: RowPlan, numbers: Ints) -> list[bytes]:
    return in_rows(subject.batch(ground(), plan, numbers, SEED))


@every_subject
def test_a_row_does_not_depend_on_the_batch_it_comes_in(subject: Subject) -> None:
    plan, whole = reference(subject)
    visits = first_visits(plan)

    @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.integers(0, len(visits) - 1), min_size=1, max_size=12))
    def law(some: list[int]) -> None:
        """Any visits in any order, some of them twice."""
        assert seen(subject, plan, visits[some]) == [whole[number] for number in some]

    law()


@every_subject
@pytest.mark.parametrize("world", [1, 2, 3])
def test_any_split_of_a_batch_among_ranks_gives_the_same_rows(subject: Subject, world: int) -> None:
    plan, whole = reference(subject)
    visits = first_visits(plan)
    for split in (lambda rank: slice(rank, None, world), lambda rank: slice(*_stretch(rank, world))):
        parts = [seen(subject, plan, visits[:BATCH][split(rank)]) for rank in range(world)]
        assert sorted(chain(*parts)) == sorted(whole[:BATCH])
        assert all(part == whole[:BATCH][split(rank)] for rank, part in enumerate(parts))


@every_subject
@pytest.mark.parametrize("step", [1, 3, STEPS - 1])
def test_a_resumed_run_sees_what_an_undisturbed_one_would(subject: Subject, step: int) -> None:
    plan, whole = reference(subject)
    batches = np.split(first_visits(plan), STEPS)[step:]
    assert list(chain(*(seen(subject, plan, batch) for batch in batches))) == whole[step * BATCH :]


@pytest.mark.parametrize("renew", [DynamicMasking(), StaticMasking(3)], ids=repr)
def test_visits_from_a_step_on_are_the_tail_of_all_visits(renew: MaskingMode) -> None:
    visits = EpochSampler(7, renew, Key.of(SEED, "task"))
    rows, key = visits(np.arange(40))
    for step in range(40):
        later, keys = visits(np.arange(step, 40))
        assert later.tolist() == rows[step:].tolist()
        assert keys.state.tolist() == key.state[step:].tolist()
    assert all(sorted(rows[first : first + 7]) == list(range(7)) for first in range(0, 35, 7))


def test_another_process_with_another_hash_seed_computes_the_same_rows() -> None:
    script = f"from law_corpus import digests, invented; print(digests(invented(documents=4), {LENGTH}, {SEED}))"
    here = Path(law_corpus.__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), *sys.path]), "PYTHONHASHSEED": "4321"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digests(ground(), LENGTH, SEED)


@drawing_subject
def test_static_masking_repeats_its_copies_and_dynamic_masking_never_repeats(subject: Subject) -> None:
    assert distinct_draws(subject, StaticMasking(10), visits=40) == 10
    assert distinct_draws(subject, DynamicMasking(), visits=40) == 40


@drawing_subject
def test_a_member_draws_as_often_as_its_own_recipe_says(subject: Subject) -> None:
    expected = min(subject.renew.num_copies, 40) if isinstance(subject.renew, StaticMasking) else 40
    assert distinct_draws(subject, subject.renew, visits=40) == expected


def distinct_draws(subject: Subject, renew: MaskingMode, visits: int) -> int:
    """How many different instances one row gives over so many visits; a long row, so that chance repeats nothing."""
    corpus = ground()
    plan = plan_of(subject.task.examples, corpus, 512, SEED)
    row = int(np.argmax(np.add.reduceat(plan.length, plan.rows[:-1])))
    timetable = Subject(subject.name, subject.task, renew).timetable(plan, SEED)
    key = timetable.key_of(np.full(visits, row), np.arange(visits))
    example = build_rows(corpus, plan, np.full(visits, row), subject.task.examples.template, corpus.vocab)
    return len(set(in_rows(subject.task.corruption(example, corpus.vocab, key))))


def _stretch(rank: int, world: int) -> tuple[int, int]:
    return BATCH * rank // world, BATCH * (rank + 1) // world
