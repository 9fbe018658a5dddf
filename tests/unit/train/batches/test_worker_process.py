"""Lessons of a process of its own: it ends with the one that asks, and its own end is heard of."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import little_course
import pytest
from little_course import corpus, run_of, training

from unmask.core.errors import UserError
from unmask.members import member
from unmask.train.batches.prefetch import Prefetcher
from unmask.train.batches.recipe_batches import BatchSource, RankSplit, RecipeBatches, RunPosition, StepBatch
from unmask.train.batches.worker_process import batch_builder, fork_available
from unmask.train.schedule import StepBudget

pytestmark = pytest.mark.skipif(not fork_available(), reason="needs a system that copies processes safely")
CREW = RankSplit(microbatch_tokens=32)


def the_process() -> multiprocessing.process.BaseProcess:
    """The one that makes lessons."""
    (found,) = (one for one in multiprocessing.active_children() if one.name == "lessons")
    return found


def held_by(process: int | None) -> list[str]:
    """The files that a process has open."""
    return [str(one.readlink()) for one in Path(f"/proc/{process}/fd").iterdir() if one.is_symlink()]


def gone(process: int, seconds: float = 10.0) -> bool:
    """Whether a process ends within some time; one that nobody waits for stays as a name alone (Z)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_lessons_come_in_the_order_in_which_they_were_asked_for() -> None:
    course = training(StepBudget(4)).source
    with batch_builder(course, CREW, process=True) as begin:
        coming = [begin(RunPosition(step, 0.0)) for step in (3, 1, 2)]
        found = [lesson() for lesson in coming]
    wanted = [course.batch(RunPosition(step, 0.0), CREW) for step in (3, 1, 2)]
    ids = [[one.inputs.ids.tolist() for one in lesson.instances] for lesson in found]
    assert ids == [[one.inputs.ids.tolist() for one in lesson.instances] for lesson in wanted]
    assert [lesson.objectives for lesson in found] == [lesson.objectives for lesson in wanted]


class Odd:
    """A course that fails over there, or only there."""

    heads_vary = False

    def __init__(self, course: BatchSource, home: int) -> None:
        self.course, self.home = course, home

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        if os.getpid() != self.home or position.step == 2:
            raise ZeroDivisionError(f"in step {position.step}")
        return self.course.batch(position, split)

    def stage_at(self, share: float) -> int:
        return 0

    def eval_batches(self) -> tuple[StepBatch, ...]:
        return ()


def test_what_cannot_be_made_there_is_made_here_or_fails_here() -> None:
    course = training(StepBudget(4)).source
    with batch_builder(Odd(course, os.getpid()), CREW, process=True) as begin:
        coming = [begin(RunPosition(step, 0.0)) for step in range(3)]
        assert [coming[step]().num_tokens for step in (0, 1)] == [
            course.batch(RunPosition(step, 0.0), CREW).num_tokens for step in (0, 1)
        ]
        with pytest.raises(ZeroDivisionError, match="in step 2"):
            coming[2]()


OWN = """
from dataclasses import dataclass, replace

from unmask.objectives.mlm import MLM
from unmask.recipes.bert import bert


@dataclass(frozen=True)
class Mine(MLM):
    pass


def mine():
    made = bert()
    stages = (replace(s, batch_size=4, tasks=tuple(replace(t, objectives=(Mine(),)) for t in s.tasks))
              for s in made.stages)
    return replace(made, name="mine", stages=tuple(stages))
"""


def test_parts_of_a_file_of_ones_own_are_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    course = RecipeBatches.of(member(f"{tmp_path / 'own.py'}:mine"), corpus(), 0, heldout_fraction=0.1)
    with batch_builder(course, CREW, process=True) as begin:
        found = begin(RunPosition(0, 0.0))()
    assert found.objectives == course.batch(RunPosition(0, 0.0), CREW).objectives
    assert type(found.objectives[0]).__name__ == "Mine"


def test_the_process_is_gone_when_the_block_is_left() -> None:
    with batch_builder(training(StepBudget(4)).source, CREW, process=True) as begin:
        begin(RunPosition(0, 0.0))()
        begin(RunPosition(1, 0.0))  # nobody waits for this one
        process = the_process()
        assert process.is_alive()
    assert not process.is_alive()


class Endless(Odd):
    """A course that never ends over there."""

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        if os.getpid() != self.home:
            time.sleep(60)
        return self.course.batch(position, split)


@pytest.mark.parametrize("stopped", [False, True], ids=["busy", "stopped"])
def test_a_block_is_left_at_once_whatever_the_process_does(stopped: bool) -> None:
    course = Endless(training(StepBudget(4)).source, os.getpid())
    began = time.monotonic()
    with Prefetcher.open(course, CREW, run_of(batch_worker_process=True)) as loader:
        loader.request(RunPosition(0, 0.0))
        process = the_process()
        time.sleep(0.2)  # the thread listens by now
        if stopped:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGSTOP)
    assert not process.is_alive()
    assert time.monotonic() - began < 10


def test_where_no_process_can_be_had_lessons_are_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, "too many processes")

    monkeypatch.setattr(os, "fork", refuse)
    course = training(StepBudget(4)).source
    with batch_builder(course, CREW, process=True) as begin:
        assert begin(RunPosition(0, 0.0))().num_tokens == course.batch(RunPosition(0, 0.0), CREW).num_tokens
    assert not [one for one in multiprocessing.active_children() if one.name == "lessons"]


def test_its_death_is_said_in_a_sentence() -> None:
    with batch_builder(training(StepBudget(4)).source, CREW, process=True) as begin:
        begin(RunPosition(0, 0.0))()
        process = the_process()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with pytest.raises(UserError, match="The process that makes lessons has ended"):
            begin(RunPosition(1, 0.0))()


KILLED = """
import multiprocessing, os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import little_course
from little_course import corpus, training
from unmask.train.schedule import StepBudget
from unmask.train.batches.recipe_batches import RankSplit, RunPosition

from unmask.train.batches.worker_process import batch_builder
with batch_builder(training(StepBudget(4)).source, RankSplit(microbatch_tokens=32), process=True) as begin:
    begin(RunPosition(0, 0.0))()
    print(multiprocessing.active_children()[0].pid, flush=True)
    time.sleep(60)
"""


def test_it_keeps_no_file_of_the_one_that_asks(tmp_path: Path) -> None:
    with (
        (tmp_path / "lock").open("w") as lock,
        batch_builder(training(StepBudget(4)).source, CREW, process=True) as begin,
    ):
        begin(RunPosition(0, 0.0))()
        assert lock.name not in held_by(the_process().pid)
        assert lock.name in held_by(os.getpid())


def test_it_ends_when_the_one_that_asks_is_killed() -> None:
    words = [sys.executable, "-c", KILLED, str(Path(little_course.__file__).parent)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout is not None
        child = int(asker.stdout.readline())
        asker.kill()
    assert gone(child)
