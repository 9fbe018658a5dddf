"""Training batches of a task: a pure function of corpus, seed and step number, so any step can be computed alone.

>>> corpus = Corpus.open(Path("data"))
>>> batches = TaskBatches.of(member("wwm"), corpus, seed=7)
>>> instance = batches(step=1000, rows=32)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.core.records import Cloze, InputsAndTargets, Ints, RowBatch, RowClass
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.row_plan import EpochSampler, MaskingMode, RowPlan, build_rows
from unmask.tasks.recipe import Recipe, Task


@dataclass(frozen=True, slots=True)
class TaskBatches:
    """The rows of one task, in the order in which they are read."""

    task: Task
    corpus: Corpus
    plan: RowPlan
    sampler: EpochSampler

    @staticmethod
    def of(recipe: Recipe, corpus: Corpus, seed: int, stage: int = 0, task: int = 0) -> TaskBatches:
        """The batches of one task of a member; refuses a corpus without the units that the member reads."""
        recipe.check_corpus(corpus.layers, str(corpus.folder))
        return TaskBatches.for_task(
            recipe.stages[stage].tasks[task], corpus, recipe.stages[stage].max_length, recipe.masking, seed
        )

    @staticmethod
    def for_task(task: Task, corpus: Corpus, max_length: int, masking: MaskingMode, seed: int) -> TaskBatches:
        """The batches of a single task: rows of at most `max_length` tokens."""
        key = Key.of(seed, task.name, max_length)
        plan = task.examples.plan(corpus, max_length, key.fold_in("plan"))
        return TaskBatches(
            task, corpus, plan, EpochSampler(len(plan), masking, key, shuffled=not task.examples.num_streams)
        )

    def __call__(self, step: int, rows: int, part: slice = slice(None)) -> InputsAndTargets:
        """The rows of a step, or only a part of them: those of one of several processes."""
        return self.batch_at(step * rows + np.arange(rows)[part])

    def batch_at(self, sample_indices: Ints) -> InputsAndTargets:
        """The rows of these visits, corrupted."""
        row, key = self.sampler(sample_indices)
        return self.task.corruption(self.build_rows(row), self.corpus.vocab, key)

    def build_rows(self, row: Ints) -> RowBatch:
        """Rows of the plan with nothing hidden."""
        return build_rows(self.corpus, self.plan, row, self.task.examples.template, self.corpus.vocab)


def to_padded(instance: InputsAndTargets, pad_id: int, ignore_index: int = -100) -> dict[str, Ints]:
    """MLM inputs and targets as the padded arrays of common training code: ids, segments, mask and labels.

    Labels are the true id at the chosen positions and `ignore_index` everywhere else.
    """
    inputs = instance.inputs
    real = np.arange(int(np.diff(inputs.rows).max())) < np.diff(inputs.rows)[:, None]
    labels = np.full(len(inputs.ids), ignore_index, dtype=np.int64)
    facts: dict[str, Ints] = {}
    for target in instance.targets:
        if isinstance(target, Cloze):
            labels[target.positions] = target.answers
        elif isinstance(target, RowClass):
            facts[target.name] = target.value

    def grid(flat: Ints, empty: int) -> Ints:
        out = np.full(real.shape, empty, dtype=np.int64)
        out[real] = flat
        return out

    return {
        "input_ids": grid(inputs.ids.astype(np.int64), pad_id),
        "token_type_ids": grid(inputs.segment.astype(np.int64), 0),
        "attention_mask": real.astype(np.int64),
        "labels": grid(labels, ignore_index),
        **facts,
    }
