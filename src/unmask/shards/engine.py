"""Many processes, one order: tasks go out, results come back, and the result never depends on who did what.

What arrives: a stream of tasks and a function that makes a worker. What leaves: the results, as they are finished.
What never happens here: more than a few tasks in memory, or a worker that dies without a word.
"""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from unmask.errors import UserError

T = TypeVar("T")
R = TypeVar("R", covariant=True)


class Work(Protocol[R]):
    """Does one task. It lives in one process and may keep caches there."""

    def __call__(self, task: Any, /) -> R:  # noqa: ANN401 - the task's own type is the caller's business
        """Do it."""


def run(tasks: Iterable[T], make: Callable[[], Work[R]], processes: int) -> Iterator[R]:
    """Do all tasks, in this process or in several. `make` must be importable by a fresh process."""
    if processes <= 1:
        work = make()
        yield from (work(task) for task in tasks)
        return
    yield from _Pool(make, processes).run(tasks)


class _Pool:
    """Worker processes around two queues."""

    def __init__(self, make: Callable[[], Work[Any]], processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.inbox: Any = context.Queue()
        self.outbox: Any = context.Queue()
        self.workers: list[BaseProcess] = [
            context.Process(target=_serve, args=(make, self.inbox, self.outbox), daemon=True) for _ in range(processes)
        ]

    def run(self, tasks: Iterable[T]) -> Iterator[Any]:
        for worker in self.workers:
            worker.start()
        try:
            waiting = 0
            for task in tasks:
                self.inbox.put(task)
                waiting += 1
                while waiting > len(self.workers) + 1:
                    yield self._next()
                    waiting -= 1
            for _ in range(waiting):
                yield self._next()
        finally:
            self._stop()

    def _next(self) -> object:
        while True:
            try:
                good, value = self.outbox.get(timeout=1)
            except queue.Empty:
                self._check()
                continue
            if good:
                return value
            raise value if isinstance(value, BaseException) else UserError(value)

    def _check(self) -> None:
        for worker in self.workers:
            if worker.exitcode not in (None, 0):
                raise UserError(
                    f"A worker process ended unexpectedly (exit code {worker.exitcode}; -9 often means that memory ran "
                    "out). What was finished is kept: start the same command again, perhaps with fewer processes."
                )

    def _stop(self) -> None:
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.join()
        for channel in (self.inbox, self.outbox):
            channel.close()
            channel.cancel_join_thread()


def _serve(make: Callable[[], Work[Any]], inbox: Any, outbox: Any) -> None:  # noqa: ANN401 - queues have no public type
    try:
        work = make()
        while True:
            outbox.put((True, work(inbox.get())))
    except KeyboardInterrupt:
        pass
    except UserError as error:
        outbox.put((False, error))
    except Exception as error:
        import traceback

        outbox.put((False, AssertionError(f"a worker failed: {error}\n{traceback.format_exc()}")))
