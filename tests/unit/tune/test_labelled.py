"""The course of a fine-tune: every row once an epoch, always in the same order, however the work is shared."""

from __future__ import annotations

import numpy as np
import pytest
from little_task import little_tokenizer

from unmask.train.course import Crew, Moment
from unmask.tune.course import Labelled
from unmask.tune.encode import Room, encode
from unmask.tune.exercise import Exercise, RowAmounts, RowFacts
from unmask.tune.judge import Judge

TEXTS = [(f"很好 {'好' * (i % 5)} {i}",) for i in range(50)]
ROWS = encode(TEXTS, little_tokenizer(), Room(16))


def course(batch: int = 8, seed: int = 0) -> Labelled:
    learned = Exercise(ROWS, RowFacts("judge", np.arange(50)))  # the truth of each row is its own number
    return Labelled(learned, learned, Judge(50), batch, 16, seed)


def numbers(lesson) -> list[int]:
    return [int(value) for instance in lesson.instances for value in instance.targets[0].value]


def test_every_epoch_shows_every_row_once_in_another_order():
    seen = [row for step in range(25) for row in numbers(course().lesson(Moment(step, 0.0), Crew()))]
    epochs = [seen[first : first + 50] for first in range(0, 200, 50)]
    assert all(sorted(epoch) == list(range(50)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    assert course().steps(4) == 25
    assert course().steps(1) == 7
    assert course().steps(0.001) == 1


def test_a_lesson_is_a_function_of_its_moment_and_seed():
    one, again, other = (course(seed=seed).lesson(Moment(3, 0.5), Crew()) for seed in (1, 1, 2))
    assert numbers(one) == numbers(again) != numbers(other)


@pytest.mark.parametrize("crew", [(1, 40), (2, 1 << 30), (3, 32)])
def test_processes_and_micro_batches_share_the_same_rows(crew):
    world, micro = crew
    parts = [course().lesson(Moment(2, 0.1), Crew(rank, world, micro)) for rank in range(world)]
    together = [row for part in parts for row in numbers(part)]
    assert together == numbers(course().lesson(Moment(2, 0.1), Crew()))
    assert all(part.asked() == (len(numbers(part)),) for part in parts)


def test_rows_and_truths_stay_together():
    for instance in course().lesson(Moment(0, 0.0), Crew(micro=16)).instances:
        for place, number in enumerate(instance.targets[0].value.tolist()):
            row = instance.inputs.ids[instance.inputs.rows[place] : instance.inputs.rows[place + 1]]
            assert row.tolist() == ROWS.take(np.array([number])).ids.tolist()


def test_a_trial_shows_every_row_once_and_like_lengths_together():
    batches = Exercise(ROWS).by_length(20)
    assert sorted(np.concatenate(batches).tolist()) == list(range(50))
    lengths = ROWS.lengths[np.concatenate(batches)]
    assert (np.diff(lengths) >= 0).all()
    assert sorted(row for lesson in course().trial() for row in numbers(lesson)) == list(range(50))


def test_numbers_travel_as_numbers():
    exercise = Exercise(ROWS, RowAmounts("rate", np.linspace(0, 1, 50)))
    assert exercise.at(np.array([49, 0])).targets[0].value.tolist() == [1.0, 0.0]
