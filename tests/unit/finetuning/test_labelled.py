"""The course of a fine-tune: every row once an epoch, always in the same order, however the work is shared."""

from __future__ import annotations

import numpy as np
import pytest
from little_task import little_tokenizer

from unmask.core.records import RowClass, RowValue
from unmask.finetuning.data.encode import LengthLimits, encode_texts
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowTargets
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.objectives.row_tasks import Classification
from unmask.train.batches.recipe_batches import RankSplit, RunPosition

TEXTS = [(f"很好 {'好' * (i % 5)} {i}",) for i in range(50)]
ROWS = encode_texts(TEXTS, little_tokenizer(), LengthLimits(16))


def course(batch: int = 8, seed: int = 0) -> EpochBatches:
    learned = EncodedDataset(ROWS, RowTargets(RowClass("judge", np.arange(50))))  # the index of the row
    return EpochBatches(learned, learned, Classification(50), batch, 16, seed)


def numbers(lesson) -> list[int]:
    return [int(value) for instance in lesson.instances for value in instance.targets[0].value]


def test_every_epoch_shows_every_row_once_in_another_order():
    seen = [row for step in range(25) for row in numbers(course().batch(RunPosition(step, 0.0), RankSplit()))]
    epochs = [seen[first : first + 50] for first in range(0, 200, 50)]
    assert all(sorted(epoch) == list(range(50)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    assert course().num_steps(4) == 25
    assert course().num_steps(1) == 7
    assert course().num_steps(0.001) == 1


def test_a_lesson_is_a_function_of_its_moment_and_seed():
    one, again, other = (course(seed=seed).batch(RunPosition(3, 0.5), RankSplit()) for seed in (1, 1, 2))
    assert numbers(one) == numbers(again) != numbers(other)


@pytest.mark.parametrize("crew", [(1, 40), (2, 1 << 30), (3, 32)])
def test_processes_and_micro_batches_share_the_same_rows(crew):
    world, micro = crew
    parts = [course().batch(RunPosition(2, 0.1), RankSplit(rank, world, micro)) for rank in range(world)]
    together = [row for part in parts for row in numbers(part)]
    assert together == numbers(course().batch(RunPosition(2, 0.1), RankSplit()))
    assert all(part.num_predictions() == (len(numbers(part)),) for part in parts)


def test_rows_and_truths_stay_together():
    for instance in course().batch(RunPosition(0, 0.0), RankSplit(microbatch_tokens=16)).instances:
        for place, number in enumerate(instance.targets[0].value.tolist()):
            row = instance.inputs.ids[instance.inputs.rows[place] : instance.inputs.rows[place + 1]]
            assert row.tolist() == ROWS.take(np.array([number])).ids.tolist()


def test_a_trial_shows_every_row_once_and_like_lengths_together():
    batches = EncodedDataset(ROWS).batches_by_length(20)
    assert sorted(np.concatenate(batches).tolist()) == list(range(50))
    lengths = ROWS.lengths[np.concatenate(batches)]
    assert (np.diff(lengths) >= 0).all()
    assert sorted(row for lesson in course().eval_batches() for row in numbers(lesson)) == list(range(50))


def test_numbers_travel_as_numbers():
    exercise = EncodedDataset(ROWS, RowTargets(RowValue("rate", np.linspace(0, 1, 50))))
    assert exercise.take(np.array([49, 0])).targets[0].value.tolist() == [1.0, 0.0]
