"""Who makes lessons: a thread of this process, or a process of its own, so that the two do not take turns in Python.

What arrives: a course and moments. What leaves: the lessons of these moments, the same from either.
What never happens here: a tensor. The process is a copy of this one that touches numpy alone, so a device and its
threads, which no copy has, are none of its business.

Lessons cross a pipe between the two. Nothing of it is read from a file or from anyone else. What cannot be made or sent
over there is made here, where it fails with its own words, if it fails.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeAlias

from unmask.core.errors import UserError
from unmask.objectives.protocol import Objective
from unmask.train.batches.recipe_batches import BatchSource, RankSplit, RunPosition, StepBatch

StartBuild: TypeAlias = Callable[[RunPosition], Callable[[], StepBatch]]
"""Begins with the lesson of a moment; what it returns waits for it. Lessons are waited for in the order of asking."""


def batch_builder(source: BatchSource, split: RankSplit, process: bool) -> AbstractContextManager[StartBuild]:
    """Someone who makes lessons for the time of a block; a process where that is wished for and can be had."""
    if process and fork_available():
        with suppress(OSError):  # too many processes, or no memory for one more
            return _build_in_process(*_start_process(source, split))
    return _build_in_caller(source, split)


def fork_available() -> bool:
    """Whether a process can be copied safely, with threads and all."""
    return sys.platform == "linux"


@contextmanager
def _build_in_caller(course: BatchSource, crew: RankSplit) -> Iterator[StartBuild]:
    yield lambda moment: partial(course.batch, moment, crew)


def _start_process(course: BatchSource, crew: RankSplit) -> tuple[BaseProcess, StartBuild]:
    """A process that is told moments and says lessons, and that ends when nobody is there to tell it more."""
    system = multiprocessing.get_context("fork")
    here, there = system.Pipe()
    process = system.Process(target=_serve_batches, args=(course, crew, here, there), daemon=True, name="lessons")
    process.start()
    there.close()
    return process, _BuilderClient(course, crew, here).request


@contextmanager
def _build_in_process(process: BaseProcess, begin: StartBuild) -> Iterator[StartBuild]:
    """It is not asked to end, because it may be stuck and has nothing to lose. Who still listens hears that it has
    gone; so the pipe is left to be closed with the last of them.
    """
    try:
        yield begin
    finally:
        process.kill()
        process.join()


@dataclass(frozen=True, slots=True)
class _BuilderClient:
    """The end of the pipe at which moments go in and lessons come out."""

    source: BatchSource
    split: RankSplit
    connection: Connection
    objectives: dict[tuple[int, str], tuple[Objective, ...]] = field(default_factory=dict)
    """The objectives by stage and place. They stay here: parts of a user's own file cannot cross."""

    def request(self, position: RunPosition) -> Callable[[], StepBatch]:
        """Tell a moment."""
        with suppress(OSError):  # nobody listens: that is heard where the lesson is needed
            self.connection.send(position)
        return partial(self._receive, position)

    def _receive(self, moment: RunPosition) -> StepBatch:
        """Its lesson."""
        try:
            found = self.connection.recv()
        except (EOFError, OSError) as error:
            raise UserError(
                "The process that makes lessons has ended, so there is nothing to learn from; often the machine is out "
                "of memory. Start the same command again: it goes on from the last checkpoint."
            ) from error
        if found is None:
            return self.source.batch(moment, self.split)
        assert isinstance(found, StepBatch)
        key = self.source.stage_at(moment.progress), found.task_name
        if key not in self.objectives:
            self.objectives[key] = self.source.batch(moment, self.split).objectives
        return replace(found, objectives=self.objectives[key])


def _serve_batches(course: BatchSource, crew: RankSplit, here: Connection, there: Connection) -> None:
    """What the process does. Ctrl-C is for the one that asks, which then hangs up."""
    gc.freeze()  # what the other process has left to be cleared away is not ours to clear
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    here.close()
    # Nor are its files: a lock would be held; and with its end of the pipe open, nobody would ever seem to have gone.
    for number in _open_files():
        if number > 2 and number != there.fileno():
            with suppress(OSError):  # the list itself was a file
                os.close(number)
    with suppress(EOFError, OSError):
        while True:
            _send_batch(there, course, there.recv(), crew)


def _open_files() -> Iterable[int]:
    """What this process has open, as Linux says; if it does not, all numbers, of which there may be a billion."""
    try:
        return [int(path.name) for path in Path("/proc/self/fd").iterdir()]
    except OSError:
        return range(os.sysconf("SC_OPEN_MAX"))


def _send_batch(line: Connection, course: BatchSource, moment: RunPosition, crew: RankSplit) -> None:
    """The lesson of a moment; nothing, if it cannot be made or cannot cross."""
    try:
        line.send(replace(course.batch(moment, crew), objectives=()))
    except Exception:  # the other side will find out why
        line.send(None)
