"""Many processes, one order: tasks go out, results come back, and the result never depends on who did what.

What arrives: a stream of tasks and a function that makes a worker. What leaves: the results, as they are finished.
What never happens here: more than a few tasks in memory, a worker that dies without a word, or one that outlives us.

Each worker has a pipe of its own and one task at a time. The next tasks are read while the workers work, so that one
that becomes free need not wait. A pipe closes when the process at its other end is gone, however it went: a dead worker
is noticed at once, and a worker that is left alone ends after its task.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Protocol, TypeVar

from unmask.core.errors import UserError

T = TypeVar("T")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class TaskFunction(Protocol[T_contra, R_co]):
    """Does one task. It lives in one process and may keep caches there."""

    def __call__(self, task: T_contra, /) -> R_co:
        """Do it."""


def preload_workers(module: str, processes: int) -> None:
    """Let a clean process import what workers will need while we are still busy with other things."""
    if processes > 1:
        with _interrupts_blocked():
            multiprocessing.get_context("forkserver").set_forkserver_preload([module])
            forkserver.ensure_running()


def map_in_processes(
    tasks: Iterable[T], make_function: Callable[[], TaskFunction[T, R]], processes: int
) -> Iterator[R]:
    """Do all tasks, in this process or in several. `make` must be importable by a fresh process."""
    if processes <= 1:
        work = make_function()
        yield from (work(task) for task in tasks)
        return
    preload_workers(getattr(make_function, "func", make_function).__module__, processes)
    with contextlib.ExitStack() as stack:
        with _interrupts_blocked():
            workers = [stack.enter_context(_Worker(make_function)) for _ in range(processes)]
        yield from _distribute(tasks, workers)


def _distribute(tasks: Iterable[T], workers: list[_Worker[T, R]]) -> Iterator[R]:
    """Hand the tasks out to whoever is free; as many tasks as there are workers lie ready."""
    ready: deque[T] = deque()
    for task in tasks:
        ready.append(task)
        yield from _exchange(ready, workers, block=len(ready) > len(workers))
    while ready or any(worker.busy for worker in workers):
        yield from _exchange(ready, workers, block=True)


def _exchange(ready: deque[T], workers: list[_Worker[T, R]], block: bool) -> list[R]:
    """Give every free worker a task. What comes back is what was finished; if patient, wait for at least one."""
    _assign(ready, workers)
    busy = {worker.pipe: worker for worker in workers if worker.busy}
    ended = wait(list(busy), timeout=None if block and busy else 0)
    results = [worker.receive() for pipe, worker in busy.items() if pipe in ended]
    _assign(ready, workers)
    return results


def _assign(ready: deque[T], workers: list[_Worker[T, R]]) -> None:
    for worker in workers:
        if ready and not worker.busy:
            worker.send(ready.popleft())


class _Worker(Generic[T, R]):
    """A process and the pipe to it. Leaving the `with` block ends the process."""

    def __init__(self, make: Callable[[], TaskFunction[T, R]]) -> None:
        # Workers are forked from one clean process that has imported what they need, so it is imported only once.
        context = multiprocessing.get_context("forkserver")
        self.pipe, theirs = context.Pipe()
        self.busy = False
        self._process = context.Process(target=_worker_loop, args=(make, theirs), daemon=True)
        self._process.start()
        theirs.close()  # only the worker holds that end now, so it closes when the worker is gone

    def __enter__(self) -> _Worker[T, R]:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()
        self.pipe.close()

    def send(self, task: T) -> None:
        """Send it a task."""
        self.busy = True
        with contextlib.suppress(OSError):  # it is gone; `take` hears its last words, or that there are none
            self.pipe.send(task)

    def receive(self) -> R:
        """Its result; raises what went wrong there."""
        try:
            good, value = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            raise UserError(
                f"A worker process ended unexpectedly (exit code {self._process.exitcode}; -9 often means that memory "
                "ran out). What was finished is kept: start the same command again, perhaps with fewer processes."
            ) from None
        self.busy = False
        if good:
            result: R = value
            return result
        raise value


def _worker_loop(make: Callable[[], TaskFunction[Any, Any]], pipe: Connection) -> None:
    """What a worker does all its life."""
    with contextlib.suppress(EOFError, ConnectionError):  # whoever gave the tasks is gone
        good, work = _call_safely(make)
        if not good:
            pipe.send((good, work))
            return
        while True:
            pipe.send(_call_safely(work, pipe.recv()))


def _call_safely(call: Callable[..., Any], *arguments: object) -> tuple[bool, Any]:
    """The result of a call, or the exception it ended with, in a form that can be sent."""
    try:
        return True, call(*arguments)
    except UserError as error:
        return False, error
    except Exception as error:
        return False, AssertionError(f"a worker failed: {error}\n{traceback.format_exc()}")


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes that are started in this block never see Ctrl-C: it is for us to end them. Nor do we, until it ends."""
    # Starting the first process also starts a tracker, and that would let interrupts through again; so it comes first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # Another thread may still be interrupted, and then it is the main one that Python tells.
    here = threading.current_thread() is threading.main_thread()
    came: list[int] = []
    usual = signal.signal(signal.SIGINT, lambda number, _: came.append(number)) if here else None
    try:
        yield
    finally:
        if here:
            signal.signal(signal.SIGINT, usual)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if came:
            signal.raise_signal(signal.SIGINT)
