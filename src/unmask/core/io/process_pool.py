"""A process pool with bounded memory: results do not depend on which worker did which task.

Each worker has its own pipe and one task at a time; one more task per worker is read in advance. A pipe closes when its
process ends, so that a dead worker is detected at once, and workers end when their parent is killed.
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
    """A worker: does one task at a time in one process, and may keep caches there."""

    def __call__(self, task: T_contra, /) -> R_co:
        """Do one task."""


def preload_workers(module: str, processes: int) -> None:
    """Start the fork server, which imports `modules` while this process does other work."""
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
    """Distribute the tasks; as many tasks as there are workers are read in advance."""
    ready: deque[T] = deque()
    for task in tasks:
        ready.append(task)
        yield from _exchange(ready, workers, block=len(ready) > len(workers))
    while ready or any(worker.busy for worker in workers):
        yield from _exchange(ready, workers, block=True)


def _exchange(ready: deque[T], workers: list[_Worker[T, R]], block: bool) -> list[R]:
    """Assign a task to every free worker and return finished results; if patient, wait for at least one."""
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
    """A worker process and its pipe. Leaving the `with` block ends the process."""

    def __init__(self, make: Callable[[], TaskFunction[T, R]]) -> None:
        # The fork server imports what workers need once.
        context = multiprocessing.get_context("forkserver")
        self.pipe, theirs = context.Pipe()
        self.busy = False
        self._process = context.Process(target=_worker_loop, args=(make, theirs), daemon=True)
        self._process.start()
        theirs.close()  # the worker has the only other handle, so the pipe closes when it ends

    def __enter__(self) -> _Worker[T, R]:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()
        self.pipe.close()

    def send(self, task: T) -> None:
        """Send a task."""
        self.busy = True
        with contextlib.suppress(OSError):  # the worker ended; `take` raises its error
            self.pipe.send(task)

    def receive(self) -> R:
        """The result of the task; raises the exception of the worker."""
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
    """The main loop of a worker process."""
    with contextlib.suppress(EOFError, ConnectionError):  # the parent process ended
        good, work = _call_safely(make)
        if not good:
            pipe.send((good, work))
            return
        while True:
            pipe.send(_call_safely(work, pipe.recv()))


def _call_safely(call: Callable[..., Any], *arguments: object) -> tuple[bool, Any]:
    """The result of a call, or its exception in a form that can be pickled."""
    try:
        return True, call(*arguments)
    except UserError as error:
        return False, error
    except Exception as error:
        return False, AssertionError(f"a worker failed: {error}\n{traceback.format_exc()}")


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Ignore Ctrl-C in processes started in this block, and delay it here until the block ends."""
    # Starting the first process also starts a tracker, and that would let interrupts through again; so it comes first.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # Another thread may be interrupted, and Python then raises in the main one.
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
