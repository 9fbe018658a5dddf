"""The order of several tasks: every batch once, mixed epoch by epoch or in turns, and a function of the step."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from unmask.records import Instance
from unmask.train.course import ALONE, Crew, Moment
from unmask.tune.course import Labelled
from unmask.tune.encode import Encoded
from unmask.tune.exercise import Exercise, RowFacts
from unmask.tune.judge import Judge
from unmask.tune.many_course import Many, Order, Weighed

SIZES = {"one": 40, "two": 22, "three": 5}


def part(name: str, count: int, batch: int = 8) -> Labelled:
    """Rows of three tokens; the middle one is the number of the row."""
    ids = np.stack([np.full(count, 2), 10 + np.arange(count), np.full(count, 3)], axis=1).astype(np.int32)
    begin = np.arange(0, 3 * count + 1, 3)
    rows = Encoded(ids.ravel(), np.zeros(3 * count, dtype=np.uint8), begin, 0)
    side = Exercise(rows, RowFacts(name, np.arange(count) % 2))
    return Labelled(side, side, Judge(2, name), batch, 16, seed=5, place=name)


def many(order=Order.MIXED, epochs=3.0, seed=5) -> Many:
    return Many(tuple(part(name, count) for name, count in SIZES.items()), epochs, order, seed)


def shown(instance: Instance) -> list[int]:
    return instance.inputs.ids[1::3].tolist()


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("epochs", [1.0, 3.0, 2.5, 0.4])
def test_every_task_has_exactly_the_batches_that_it_would_have_alone(order, epochs):
    course = many(order, epochs)
    found = Counter(course.at(step) for step in range(course.steps))
    wanted = {(task, n): 1 for task, one in enumerate(course.parts) for n in range(one.steps(epochs))}
    assert found == wanted


def test_a_lesson_is_the_batch_of_one_task():
    course = many()
    for step in range(course.steps):
        task, number = course.at(step)
        lesson, alone = course.lesson(Moment(step, 0.0), ALONE), course.parts[task].lesson(Moment(number, 0.0), ALONE)
        assert lesson.place == tuple(SIZES)[task]
        assert [one.name for one in lesson.objectives] == [lesson.place]
        assert [shown(one) for one in lesson.instances] == [shown(one) for one in alone.instances]


def test_each_epoch_holds_every_task_and_is_mixed_anew():
    course = many(epochs=4.0)
    order = [course.at(step)[0] for step in range(course.steps)]
    epochs = np.array(order[: 4 * (len(order) // 4)]).reshape(4, -1)
    assert all({0, 1} <= set(one.tolist()) for one in epochs)
    assert len({tuple(one.tolist()) for one in epochs}) > 1
    changes = sum(a != b for a, b in itertools.pairwise(order))
    assert changes > 4 * 3  # in turns there would be at most 11


def test_in_turns_one_task_follows_another_in_every_epoch():
    course = many(Order.ALTERNATING, epochs=2.0)
    order = [course.at(step)[0] for step in range(course.steps)]
    first = sum(one.steps(1) for one in course.parts)
    assert order[:first] == sorted(order[:first])
    assert order[first:] == sorted(order[first:])
    numbers = [course.at(step)[1] for step in range(course.steps)]
    assert [n for n, task in zip(numbers, order, strict=True) if task == 0] == list(range(10))


def test_the_seed_decides_the_order():
    orders = [[many(seed=seed).at(step) for step in range(many().steps)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


def test_processes_share_a_step():
    course = many()
    whole = shown(course.lesson(Moment(4, 0.0), ALONE).instances[0])
    halves = [course.lesson(Moment(4, 0.0), Crew(rank, 2)) for rank in range(2)]
    assert [number for lesson in halves for one in lesson.instances for number in shown(one)] == whole
    assert halves[0].place == halves[1].place


def test_the_trial_is_about_all_tasks_and_lessons_go_past_the_end():
    course = many()
    counts = Counter(dict.fromkeys(SIZES, 0))
    for lesson in course.trial():
        counts[lesson.place] += lesson.rows
    assert counts == SIZES
    assert course.mixed
    assert not Many(course.parts[:1], 1.0, Order.MIXED, 0).mixed
    assert course.at(course.steps) == course.at(0)


def test_a_weight_changes_nothing_but_the_weight():
    plain = Judge(2, "one")
    weighed = Weighed(plain, 0.25)
    instance = part("one", 6).learned.at(np.arange(4))
    assert (weighed.weight, weighed.name, weighed.asked(instance)) == (0.25, "one", 4)
    assert (weighed.reads, weighed.facts) == (plain.reads, plain.facts)
