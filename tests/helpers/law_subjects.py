"""Who is held to the laws: every task of every member in `recipes/` and every bare rule, found by walking."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from unmask.core.records import InputsAndTargets, Ints, RowBatch
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.row_plan import (
    DynamicMasking,
    EpochSampler,
    InputFormat,
    MaskingMode,
    RowPlan,
    build_rows,
)
from unmask.members import members
from unmask.tasks.presets import presets
from unmask.tasks.recipe import Task


@dataclass(frozen=True, slots=True)
class Subject:
    """A task, the name that a failing test shows, and how its draws are renewed."""

    name: str
    task: Task
    renew: MaskingMode = DynamicMasking()

    def timetable(self, plan: RowPlan, seed: int) -> EpochSampler:
        """When each row of a plan is read, and under which key."""
        return EpochSampler(len(plan), self.renew, Key.of(seed, self.task.name))

    def rows(self, corpus: Corpus, plan: RowPlan, numbers: Ints, seed: int) -> tuple[RowBatch, Key]:
        """The rows of these visits, and the keys under which they are corrupted."""
        row, key = self.timetable(plan, seed)(numbers)
        return build_rows(corpus, plan, row, self.task.examples.template, corpus.vocab), key

    def batch(self, corpus: Corpus, plan: RowPlan, numbers: Ints, seed: int) -> InputsAndTargets:
        """What the task makes of the rows of these visits."""
        example, key = self.rows(corpus, plan, numbers, seed)
        return self.task.corruption(example, corpus.vocab, key)


def subjects() -> tuple[Subject, ...]:
    """Members first, then rules."""
    of_members = (Subject(f"{one.name}:{task.name}", task, one.masking) for one in members() for task in one.tasks)
    return (*of_members, *(Subject(f"rule:{one.name}", one.task) for one in presets()))


def planned(corpus: Corpus, length: int, seed: int) -> list[tuple[RowPlan, list[Subject]]]:
    """Every subject with its plan of the corpus; those that build rows alike share one. A plan may have no rows."""
    alike = groupby(sorted(subjects(), key=_builder), key=_builder)
    groups = [list(found) for _, found in alike]
    return [(plan_of(found[0].task.examples, corpus, length, seed), found) for found in groups]


def plan_of(examples: InputFormat, corpus: Corpus, length: int, seed: int) -> RowPlan:
    """The plan of all rows."""
    return examples.plan(corpus, length, Key.of(seed, "plan"))


def all_rows(plan: RowPlan) -> Ints:
    """The visits of one pass: every row once."""
    return np.arange(len(plan))


def _builder(subject: Subject) -> str:
    return repr(subject.task.examples)
