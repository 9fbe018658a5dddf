"""Rows for training: a task, a corpus and a seed go in; the instances of any step come out.

What arrives: the number of a step. What leaves: an `Instance` with the rows of that step, corrupted.
What never happens here: state. Step 1000 is computed without steps 0 to 999, so going on after a stop needs one number.

    >>> corpus = Corpus.open(Path("data"))
    >>> feed = Feed.of(member("wwm"), corpus, seed=7)
    >>> instance = feed(step=1000, rows=32)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.examples.plan import Plan, build
from unmask.examples.visits import Renew, Visits
from unmask.keys import Key
from unmask.records import Cloze, Example, Fact, Instance, Ints
from unmask.shards.corpus import Corpus
from unmask.tasks import Recipe, Task


@dataclass(frozen=True, slots=True)
class Feed:
    """The rows of one task, in the order in which they are read."""

    task: Task
    corpus: Corpus
    plan: Plan
    visits: Visits

    @staticmethod
    def of(recipe: Recipe, corpus: Corpus, seed: int, stage: int = 0, task: int = 0) -> Feed:
        """The feed of one task of a member; refuses a corpus that was not segmented into what the member reads."""
        recipe.check(corpus.layers, str(corpus.folder))
        return Feed.plan_for(recipe.stages[stage].tasks[task], corpus, recipe.stages[stage].length, recipe.renew, seed)

    @staticmethod
    def plan_for(task: Task, corpus: Corpus, length: int, renew: Renew, seed: int) -> Feed:
        """The feed of a bare task: rows of at most `length` tokens."""
        key = Key.of(seed, task.name, length)
        plan = task.examples.plan(corpus, length, key.fold("plan"))
        return Feed(task, corpus, plan, Visits(len(plan), renew, key))

    def __call__(self, step: int, rows: int, part: slice = slice(None)) -> Instance:
        """The rows of a step, or only some of them: what one of several processes takes."""
        return self.at(step * rows + np.arange(rows)[part])

    def at(self, visits: Ints) -> Instance:
        """The rows of these visits, corrupted."""
        row, key = self.visits(visits)
        return self.task.corrupt(self.example(row), self.corpus.vocab, key)

    def example(self, row: Ints) -> Example:
        """Rows of the plan with nothing hidden."""
        return build(self.corpus, self.plan, row, self.task.examples.frame, self.corpus.vocab)


def padded(instance: Instance, pad: int, ignore: int = -100) -> dict[str, Ints]:
    """A cloze as the padded arrays that most training code expects: ids, segments, mask and labels.

    Labels hold the true id at the chosen positions and `ignore` everywhere else.
    """
    inputs = instance.inputs
    real = np.arange(int(np.diff(inputs.rows).max())) < np.diff(inputs.rows)[:, None]
    labels = np.full(len(inputs.ids), ignore, dtype=np.int64)
    facts: dict[str, Ints] = {}
    for target in instance.targets:
        if isinstance(target, Cloze):
            labels[target.positions] = target.answers
        elif isinstance(target, Fact):
            facts[target.name] = target.value

    def grid(flat: Ints, empty: int) -> Ints:
        out = np.full(real.shape, empty, dtype=np.int64)
        out[real] = flat
        return out

    return {
        "input_ids": grid(inputs.ids.astype(np.int64), pad),
        "token_type_ids": grid(inputs.segment.astype(np.int64), 0),
        "attention_mask": real.astype(np.int64),
        "labels": grid(labels, ignore),
        **facts,
    }
