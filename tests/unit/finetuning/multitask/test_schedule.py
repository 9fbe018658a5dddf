"""The order of several tasks: every batch once, mixed epoch by epoch or in turns, and a function of the step."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from unmask.core.records import InputsAndTargets, RowClass
from unmask.finetuning.data.encode import EncodedRows
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowTargets
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.multitask.schedule import MultiTaskBatches, TaskOrder, WeightedObjective
from unmask.objectives.row_tasks import Classification
from unmask.train.batches.recipe_batches import SINGLE_PROCESS, RankSplit, RunPosition

SIZES = {"one": 40, "two": 22, "three": 5}


def part(name: str, count: int, batch: int = 8) -> EpochBatches:
    """Rows of three tokens; the middle one is the number of the row."""
    ids = np.stack([np.full(count, 2), 10 + np.arange(count), np.full(count, 3)], axis=1).astype(np.int32)
    begin = np.arange(0, 3 * count + 1, 3)
    rows = EncodedRows(ids.ravel(), np.zeros(3 * count, dtype=np.uint8), begin, 0)
    side = EncodedDataset(rows, RowTargets(RowClass(name, np.arange(count) % 2)))
    return EpochBatches(side, side, Classification(2, name), batch, 16, seed=5, task_name=name)


def many(order=TaskOrder.MIXED, epochs=3.0, seed=5) -> MultiTaskBatches:
    return MultiTaskBatches(tuple(part(name, count) for name, count in SIZES.items()), epochs, order, seed)


def shown(instance: InputsAndTargets) -> list[int]:
    return instance.inputs.ids[1::3].tolist()


@pytest.mark.parametrize("order", list(TaskOrder))
@pytest.mark.parametrize("epochs", [1.0, 3.0, 2.5, 0.4])
def test_every_task_has_exactly_the_batches_that_it_would_have_alone(order, epochs):
    course = many(order, epochs)
    found = Counter(course.locate_step(step) for step in range(course.num_steps))
    wanted = {(task, n): 1 for task, one in enumerate(course.parts) for n in range(one.num_steps(epochs))}
    assert found == wanted


def test_a_lesson_is_the_batch_of_one_task():
    course = many()
    for step in range(course.num_steps):
        task, number = course.locate_step(step)
        lesson, alone = (
            course.batch(RunPosition(step, 0.0), SINGLE_PROCESS),
            course.parts[task].batch(RunPosition(number, 0.0), SINGLE_PROCESS),
        )
        assert lesson.task_name == tuple(SIZES)[task]
        assert [one.name for one in lesson.objectives] == [lesson.task_name]
        assert [shown(one) for one in lesson.instances] == [shown(one) for one in alone.instances]


def test_each_epoch_holds_every_task_and_is_mixed_anew():
    course = many(epochs=4.0)
    order = [course.locate_step(step)[0] for step in range(course.num_steps)]
    epochs = np.array(order[: 4 * (len(order) // 4)]).reshape(4, -1)
    assert all({0, 1} <= set(one.tolist()) for one in epochs)
    assert len({tuple(one.tolist()) for one in epochs}) > 1
    changes = sum(a != b for a, b in itertools.pairwise(order))
    assert changes > 4 * 3  # in turns there would be at most 11


def test_in_turns_one_task_follows_another_in_every_epoch():
    course = many(TaskOrder.ALTERNATING, epochs=2.0)
    order = [course.locate_step(step)[0] for step in range(course.num_steps)]
    first = sum(one.num_steps(1) for one in course.parts)
    assert order[:first] == sorted(order[:first])
    assert order[first:] == sorted(order[first:])
    numbers = [course.locate_step(step)[1] for step in range(course.num_steps)]
    assert [n for n, task in zip(numbers, order, strict=True) if task == 0] == list(range(10))


def test_the_seed_decides_the_order():
    orders = [[many(seed=seed).locate_step(step) for step in range(many().num_steps)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_processes_share_a_step():
    course = many()
    whole = shown(course.batch(RunPosition(4, 0.0), SINGLE_PROCESS).instances[0])
    halves = [course.batch(RunPosition(4, 0.0), RankSplit(rank, 2)) for rank in range(2)]
    assert [number for lesson in halves for one in lesson.instances for number in shown(one)] == whole
    assert halves[0].task_name == halves[1].task_name


def test_the_trial_is_about_all_tasks_and_lessons_go_past_the_end():
    course = many()
    counts = Counter(dict.fromkeys(SIZES, 0))
    for lesson in course.eval_batches():
        counts[lesson.task_name] += lesson.num_rows
    assert counts == SIZES
    assert course.heads_vary
    assert not MultiTaskBatches(course.parts[:1], 1.0, TaskOrder.MIXED, 0).heads_vary
    assert course.locate_step(course.num_steps) == course.locate_step(0)


def test_a_weight_changes_nothing_but_the_weight():
    plain = Classification(2, "one")
    weighed = WeightedObjective(plain, 0.25)
    instance = part("one", 6).train.take(np.arange(4))
    assert (weighed.weight, weighed.name, weighed.num_predictions(instance)) == (0.25, "one", 4)
    assert (weighed.target_type, weighed.facts) == (plain.target_type, plain.facts)
