"""Lessons made ahead: the same as those made in time, and the wait for them is measured."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from little_course import recipe, run_of, training

from unmask.nets.batch.transfer import iter_tensors
from unmask.train.batches.prefetch import Prefetcher
from unmask.train.batches.recipe_batches import BatchSource, RankSplit, RunPosition, StepBatch
from unmask.train.schedule import StepBudget
from unmask.train.step import DeviceBatch, copy_async, timestamp

CREW = RankSplit(microbatch_tokens=32)


class Slow:
    """A course whose lessons take a while, and which remembers who made them."""

    def __init__(self, course: BatchSource, seconds: float) -> None:
        self.course, self.seconds, self.heads_vary = course, seconds, course.heads_vary
        self.threads: set[int] = set()
        self.made: list[RunPosition] = []

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        self.threads.add(threading.get_ident())
        self.made.append(position)
        time.sleep(self.seconds)
        return self.course.batch(position, split)

    def stage_at(self, share: float) -> int:
        return self.course.stage_at(share)

    def eval_batches(self) -> tuple[StepBatch, ...]:
        return ()


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_a_lesson_made_ahead_is_that_of_its_moment(process: bool) -> None:
    course, run = training(StepBudget(4)).source, run_of(batch_worker_process=process)
    with Prefetcher.open(course, CREW, run) as loader:
        coming = [loader.request(RunPosition(step, 0.0)) for step in (2, 0, 2)]
        found = [one.wait()[0] for one in coming]
    for step, loaded in zip((2, 0, 2), found, strict=True):
        wanted = DeviceBatch.of(course.batch(RunPosition(step, 0.0), CREW), run.device)
        assert len(loaded.batches) == len(wanted.batches) > 1
        pairs = zip(iter_tensors(loaded.batches), iter_tensors(wanted.batches), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)


def test_only_the_time_in_which_nothing_else_was_done_counts_as_waiting() -> None:
    slow = Slow(training(StepBudget(4)).source, 0.3)
    with Prefetcher.open(slow, CREW, run_of()) as loader:
        waited_at_once = loader.request(RunPosition(0, 0.0)).wait()[1]
        coming = loader.request(RunPosition(1, 0.0))
        time.sleep(0.6)
        waited_after_work = coming.wait()[1]
    assert waited_at_once >= 0.29
    assert waited_after_work < 0.2
    assert slow.threads.isdisjoint({threading.get_ident()})


def test_lessons_are_foreseen_and_made_once() -> None:
    slow = Slow(training(StepBudget(4)).source, 0.0)
    with Prefetcher.open(slow, CREW, run_of()) as loader:
        for step in range(4):
            loader.request(RunPosition(step, step / 4)).wait()
            assert loader.prefetched
            loader.prefetched.future.result()
            assert [position.step for position in slow.made] == list(range(step + 2))
    assert [position.step for position in slow.made[:4]] == [0, 1, 2, 3]
    assert len(slow.made) <= 5


def test_a_lesson_that_was_foreseen_in_another_stage_is_made_anew() -> None:
    course = training(StepBudget(4), recipe((0.5, 0.5))).source
    with Prefetcher.open(course, CREW, run_of()) as loader:
        found = [
            loader.request(RunPosition(step, share)).wait()[0].step_batch.max_length
            for step, share in ((0, 0.4), (1, 0.6))
        ]
    assert found == [course.batch(RunPosition(1, share), CREW).max_length for share in (0.4, 0.6)] == [16, 24]


def test_an_evened_lesson_asks_the_same() -> None:
    course, plain, even = training(StepBudget(4)).source, run_of(), run_of(bucket_shapes=True)
    shapes = []
    for run in (plain, even):
        with Prefetcher.open(course, CREW, run) as loader:
            loaded = loader.request(RunPosition(0, 0.0)).wait()[0]
        shapes.append([len(batch.tokens.ids_T) for batch in loaded.batches])
        assert loaded.step_batch.num_predictions() == course.batch(RunPosition(0, 0.0), CREW).num_predictions()
    assert max(shapes[0]) < min(shapes[1])
    assert len(set(shapes[1])) == 1


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_what_fails_in_the_background_is_heard_where_it_is_needed(process: bool) -> None:
    class Broken(Slow):
        def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
            raise OSError("the disk is gone")

    with Prefetcher.open(
        Broken(training(StepBudget(4)).source, 0.0), CREW, run_of(batch_worker_process=process)
    ) as loader:
        coming = loader.request(RunPosition(0, 0.0))
        with pytest.raises(OSError, match="the disk is gone"):
            coming.wait()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_numbers_leave_a_gpu_without_a_wait() -> None:
    numbers = torch.arange(3.0, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = copy_async(numbers * 2)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert found.read() == [0.0, 2.0, 4.0]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_says_when_it_got_somewhere_not_when_somebody_asked() -> None:
    device = torch.device("cuda")
    start, began = time.monotonic(), timestamp(device)
    torch.cuda._sleep(200_000_000)  # about a tenth of a second, more where others use the GPU
    first = timestamp(device)
    first.read()
    there = time.monotonic()
    time.sleep(0.3)
    second = timestamp(device)
    time.sleep(0.2)
    second.read()
    assert 0.05 < first.seconds_since(began) <= there - start + 0.001
    assert second.seconds_since(first) >= 0.299


def test_a_host_says_when_numbers_were_there() -> None:
    start, began = time.monotonic(), timestamp(torch.device("cpu"))
    time.sleep(0.02)
    later, end = timestamp(torch.device("cpu")), time.monotonic()
    time.sleep(0.02)
    assert 0.02 <= later.seconds_since(began) <= end - start
