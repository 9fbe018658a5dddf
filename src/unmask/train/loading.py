"""Lessons made in the background, while the device is busy with the steps before.

What arrives: a moment. What leaves: its lesson with tensors on the device, and how long the loop had to wait for it.
What never happens here: a lesson that depends on when it was made. It follows from its moment alone, so making it early
changes nothing; only the share of a budget in hours is that of the moment when it was asked for.

When a lesson is asked for, that of the following step is begun as well: it is foreseen, and taken when it is asked for,
unless the run has gone on to another stage by then.

On a GPU the tensors cross on a stream of their own, from pinned memory, so that neither the host nor the kernels of the
step before wait for them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeAlias

import torch

from unmask.nets.carry import pieces_of
from unmask.train.course import Course, Crew, Lesson, Moment
from unmask.train.makers import Begin, maker
from unmask.train.run import Run
from unmask.train.step import Loaded

Arrival: TypeAlias = tuple[torch.cuda.Event, ...]
"""What kernels wait for before they read a lesson; nothing where there are no streams."""
_TURN = 1e-4
"""Seconds for which a thread keeps Python to itself while another one asks for it."""


@dataclass(frozen=True, slots=True)
class Coming:
    """A lesson that is being made."""

    moment: Moment
    future: Future[tuple[Loaded, Arrival]]
    lane: Lane

    def take(self) -> tuple[Loaded, float]:
        """The lesson, ready for the kernels that are queued from now on, and the seconds that were waited for it."""
        began = time.perf_counter()
        loaded, arrival = self.future.result()
        waited = time.perf_counter() - began
        self.lane.hand_over(loaded, arrival)
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

    def arrival(self) -> Arrival:
        """When everything that was sent so far is there."""
        return tuple(stream.record_event() for stream in self.streams)

    def hand_over(self, loaded: Loaded, arrival: Arrival) -> None:
        """Let kernels that are queued from now on wait for the tensors, and keep their memory so long."""
        for event in arrival:
            kernels = torch.cuda.current_stream(self.device)
            kernels.wait_event(event)
            for piece in pieces_of(loaded.batches):
                piece.record_stream(kernels)


@dataclass(slots=True)
class Loader:
    """Makes lessons, with one thread of its own that turns them into tensors."""

    course: Course
    run: Run
    lane: Lane
    pool: ThreadPoolExecutor
    begin: Begin
    foreseen: Coming | None = None
    """The lesson that will be asked for next, it seems."""

    @staticmethod
    @contextmanager
    def open(course: Course, crew: Crew, run: Run) -> Iterator[Loader]:
        """A loader for the time of a block."""
        # The thread may listen to a maker that is stuck: who makes lessons goes first, and then the thread ends.
        with ThreadPoolExecutor(1) as pool, maker(course, crew, run.loader_process) as begin, _short_turns():
            try:
                yield Loader(course, run, Lane.to(run.device), pool, begin)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def ask(self, moment: Moment) -> Coming:
        """The lesson of a moment, which is begun now unless it was foreseen; the one after it is begun as well."""
        expected = self.foreseen
        coming = expected if expected and self._same(expected.moment, moment) else self._begun(moment)
        self.foreseen = self._begun(Moment(moment.step + 1, moment.share))
        return coming

    def _same(self, one: Moment, other: Moment) -> bool:
        """Whether two moments have one lesson."""
        return one.step == other.step and self.course.stage_at(one.share) == self.course.stage_at(other.share)

    def _begun(self, moment: Moment) -> Coming:
        return Coming(moment, self.pool.submit(self._load, self.begin(moment)), self.lane)

    def _load(self, lesson: Callable[[], Lesson]) -> tuple[Loaded, Arrival]:
        with self.lane.open():
            return Loaded.of(lesson(), self.run.device, self.run.fixed), self.lane.arrival()


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
