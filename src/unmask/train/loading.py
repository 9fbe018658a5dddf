"""Lessons made in the background, while the device is busy with the step before.

What arrives: a moment. What leaves: its lesson with tensors on the device, and how long the loop had to wait for it.
What never happens here: a lesson that depends on when it was made. It follows from its moment alone, so making it early
changes nothing; only the share of a budget in hours is that of the moment when it was asked for.

On a GPU the tensors cross on a stream of their own, from pinned memory, so that neither the host nor the kernels of the
step before wait for them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch

from unmask.nets.carry import pieces_of
from unmask.train.course import Course, Crew, Moment
from unmask.train.run import Run
from unmask.train.step import Loaded

_TURN = 1e-4
"""Seconds for which a thread keeps Python to itself while another one asks for it."""


@dataclass(frozen=True, slots=True)
class Coming:
    """A lesson that is being made."""

    future: Future[Loaded]
    lane: Lane

    def take(self) -> tuple[Loaded, float]:
        """The lesson, ready for the kernels that are queued from now on, and the seconds that were waited for it."""
        began = time.perf_counter()
        loaded = self.future.result()
        waited = time.perf_counter() - began
        self.lane.hand_over(loaded)
        return loaded, waited


@dataclass(frozen=True, slots=True)
class Lane:
    """The way on which tensors reach a device: on a GPU beside the kernels, elsewhere none is needed."""

    device: torch.device
    streams: tuple[torch.cuda.Stream, ...]
    """The stream for copies; empty where there are no streams."""

    @staticmethod
    def to(device: torch.device) -> Lane:
        """A lane of its own."""
        if device.type != "cuda":
            return Lane(device, ())
        return Lane(device, (torch.cuda.Stream(device),))  # type: ignore[no-untyped-call]

    def open(self) -> AbstractContextManager[object]:
        """The context in which tensors are sent."""
        return torch.cuda.stream(self.streams[0]) if self.streams else nullcontext()

    def hand_over(self, loaded: Loaded) -> None:
        """Let kernels that are queued from now on wait for the tensors, on the device, and keep their memory so long.

        Copies that were queued later, for a lesson after this one, are waited for too; there are none: the loop asks
        for the next lesson when it has taken this one at the earliest.
        """
        for stream in self.streams:
            kernels = torch.cuda.current_stream(self.device)
            kernels.wait_stream(stream)
            for piece in pieces_of(loaded.batches):
                piece.record_stream(kernels)


@dataclass(frozen=True, slots=True)
class Loader:
    """Makes lessons in one thread of its own."""

    course: Course
    crew: Crew
    run: Run
    lane: Lane
    pool: ThreadPoolExecutor

    @staticmethod
    @contextmanager
    def open(course: Course, crew: Crew, run: Run) -> Iterator[Loader]:
        """A loader for the time of a block."""
        with ThreadPoolExecutor(1) as pool, _short_turns():
            yield Loader(course, crew, run, Lane.to(run.device), pool)

    def ask(self, moment: Moment) -> Coming:
        """Begin with the lesson of a moment."""
        return Coming(self.pool.submit(self._make, moment), self.lane)

    def _make(self, moment: Moment) -> Loaded:
        with self.lane.open():
            return Loaded.of(self.course.lesson(moment, self.crew), self.run.device, self.run.fixed)


@contextmanager
def _short_turns() -> Iterator[None]:
    """Let threads of Python take short turns.

    Whoever has waited for the device asks for a turn when it goes on, and by default may have to wait 5 ms for it while
    a lesson is being made: longer than a step of a small network.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
