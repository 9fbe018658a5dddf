"""Prefetch: batches are made in the background while the device computes the steps before.

A batch is a function of its position, so making it early changes nothing. When a batch is requested, that of the next
step is started as well; it is used unless the run has entered another stage by then. On a GPU tensors are copied from
pinned memory on a stream of their own.
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

from unmask.nets.batch.transfer import storages
from unmask.train.batches.recipe_batches import BatchSource, RankSplit, RunPosition, StepBatch
from unmask.train.batches.worker_process import StartBuild, batch_builder
from unmask.train.run_config import RunConfig
from unmask.train.step import DeviceBatch

CopyEvents: TypeAlias = tuple[torch.cuda.Event, ...]
"""What kernels wait for before they read a lesson; nothing where there are no streams."""
_SWITCH_INTERVAL = 1e-4
"""Seconds for which a thread keeps Python to itself while another one asks for it."""


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """A lesson that is being made."""

    position: RunPosition
    future: Future[tuple[DeviceBatch, CopyEvents]]
    copy_stream: CopyStream

    def wait(self) -> tuple[DeviceBatch, float]:
        """The lesson, ready for the kernels that are queued from now on, and the seconds that were waited for it."""
        began = time.perf_counter()
        loaded, arrival = self.future.result()
        waited = time.perf_counter() - began
        self.copy_stream.make_visible(loaded, arrival)
        return loaded, waited


@dataclass(frozen=True, slots=True)
class CopyStream:
    """The way on which tensors reach a device: on a GPU beside the kernels, elsewhere none is needed."""

    device: torch.device
    streams: tuple[torch.cuda.Stream, ...]
    """The stream for copies; empty where there are no streams."""

    @staticmethod
    def for_device(device: torch.device) -> CopyStream:
        """A lane of its own."""
        if device.type != "cuda":
            return CopyStream(device, ())
        return CopyStream(device, (torch.cuda.Stream(device),))  # type: ignore[no-untyped-call]

    def activate(self) -> AbstractContextManager[object]:
        """The context in which tensors are sent."""
        return torch.cuda.stream(self.streams[0]) if self.streams else nullcontext()

    def record_events(self) -> CopyEvents:
        """When everything that was sent so far is there."""
        return tuple(stream.record_event() for stream in self.streams)

    def make_visible(self, loaded: DeviceBatch, events: CopyEvents) -> None:
        """Let kernels that are queued from now on wait for the tensors, and keep their memory so long."""
        for event in events:
            kernels = torch.cuda.current_stream(self.device)
            kernels.wait_event(event)
            for piece in storages(loaded.batches):
                piece.record_stream(kernels)


@dataclass(slots=True)
class Prefetcher:
    """Makes lessons, with one thread of its own that turns them into tensors."""

    source: BatchSource
    run: RunConfig
    copy_stream: CopyStream
    executor: ThreadPoolExecutor
    start_build: StartBuild
    prefetched: PendingBatch | None = None
    """The lesson that will be asked for next, it seems."""

    @staticmethod
    @contextmanager
    def open(source: BatchSource, split: RankSplit, run: RunConfig) -> Iterator[Prefetcher]:
        """A loader for the time of a block."""
        # The thread may listen to a maker that is stuck: who makes lessons goes first, and then the thread ends.
        with (
            ThreadPoolExecutor(1) as pool,
            batch_builder(source, split, run.batch_worker_process) as begin,
            _short_switch_interval(),
        ):
            try:
                yield Prefetcher(source, run, CopyStream.for_device(run.device), pool, begin)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def request(self, position: RunPosition) -> PendingBatch:
        """The lesson of a moment, which is begun now unless it was foreseen; the one after it is begun as well."""
        expected = self.prefetched
        coming = expected if expected and self._is_same_batch(expected.position, position) else self._start(position)
        self.prefetched = self._start(RunPosition(position.step + 1, position.progress))
        return coming

    def _is_same_batch(self, one: RunPosition, other: RunPosition) -> bool:
        """Whether two moments have one lesson."""
        return one.step == other.step and self.source.stage_at(one.progress) == self.source.stage_at(other.progress)

    def _start(self, moment: RunPosition) -> PendingBatch:
        return PendingBatch(moment, self.executor.submit(self._load, self.start_build(moment)), self.copy_stream)

    def _load(self, lesson: Callable[[], StepBatch]) -> tuple[DeviceBatch, CopyEvents]:
        with self.copy_stream.activate():
            return DeviceBatch.of(lesson(), self.run.device, self.run.has_few_shapes), self.copy_stream.record_events()


@contextmanager
def _short_switch_interval() -> Iterator[None]:
    """Let threads of Python take short turns.

    Whoever has waited for the device asks for a turn when it goes on, and by default may have to wait 5 ms for it while
    a lesson is being made: longer than a step of a small network.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
