"""Tasks shared between processes: the results do not depend on how many there are, and trouble arrives."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import count, islice

import pytest

from unmask.core.errors import InputError, UserError
from unmask.core.io.process_pool import _interrupts_blocked, map_in_processes


class Square:
    """A worker. Odd tasks take longer, so that results overtake each other."""

    def __init__(self, troublesome: int = -1, trouble: str = "") -> None:
        self.troublesome, self.trouble = troublesome, trouble
        if trouble == "at birth":
            raise InputError("the worker could not be made")

    def __call__(self, task: int) -> tuple[int, int, int]:
        if task == self.troublesome:
            self.fail()
        time.sleep(0.01 * (task % 2))
        return task, task * task, os.getpid()

    def fail(self) -> None:
        if self.trouble == "user's":
            raise InputError("line 7 is bad")
        if self.trouble == "ours":
            raise ZeroDivisionError("a bug")
        os._exit(9)


def broken(trouble: str) -> partial[Square]:
    return partial(Square, troublesome=3, trouble=trouble)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_every_task_is_done_once(processes: int) -> None:
    results = list(map_in_processes(range(20), Square, processes))
    assert sorted((task, value) for task, value, _ in results) == [(task, task * task) for task in range(20)]
    homes = {home for _, _, home in results}
    assert homes == {os.getpid()} if processes == 1 else os.getpid() not in homes and len(homes) == processes


def test_fewer_tasks_than_processes() -> None:
    assert [value for _, value, _ in map_in_processes([5], Square, 3)] == [25]
    assert list(map_in_processes([], Square, 2)) == []


def test_few_tasks_wait_in_memory() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for task in count():
            taken.append(task)
            yield task

    for done, _ in enumerate(islice(map_in_processes(tasks(), Square, 2), 30), start=1):
        assert len(taken) - done <= 5


@pytest.mark.parametrize("processes", [1, 2])
def test_a_users_mistake_arrives_as_it_is(processes: int) -> None:
    with pytest.raises(InputError, match="line 7 is bad"):
        list(map_in_processes(range(10), broken("user's"), processes))


def test_a_worker_that_cannot_be_made_says_why() -> None:
    with pytest.raises(InputError, match="the worker could not be made"):
        list(map_in_processes(range(10), broken("at birth"), 2))


def test_a_bug_in_a_worker_arrives_with_its_traceback() -> None:
    with pytest.raises(AssertionError, match=r"a worker failed: a bug\n(.|\n)*in fail"):
        list(map_in_processes(range(10), broken("ours"), 2))


def test_a_killed_worker_is_reported_at_once() -> None:
    with pytest.raises(UserError, match=r"ended unexpectedly \(exit code 9;"):
        list(map_in_processes(range(10), broken("killed"), 2))


def test_workers_end_when_results_are_no_longer_wanted() -> None:
    results = map_in_processes(range(1000), Square, 2)
    home = next(results)[2]
    results.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(home, 0)


@pytest.mark.parametrize("idle", [False, True], ids=["alone", "beside a thread"])
def test_an_interrupt_waits_until_processes_are_started(idle: bool) -> None:
    """A thread that nobody shielded takes the signal, and Python would tell the main one at once."""
    over, reached = threading.Event(), []
    if idle:
        threading.Thread(target=over.wait, daemon=True).start()

    def start() -> None:
        with _interrupts_blocked():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        start()
    over.set()
    assert reached == ["the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
