"""Who makes lessons: a thread of this process, or a process of its own, so that Python has nothing to share out.

What arrives: a course and moments. What leaves: the lessons of these moments, the same from either.
What never happens here: a tensor. The process is a copy of this one that touches numpy alone, so a device and its
threads, which no copy has, are none of its business.

Lessons cross a pipe between the two. Nothing of it is read from a file or from anyone else.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import TypeAlias

from unmask.errors import UserError
from unmask.train.course import Course, Crew, Lesson, Moment

Begin: TypeAlias = Callable[[Moment], Callable[[], Lesson]]
"""Begins with the lesson of a moment; what it returns waits for it. Lessons are waited for in the order of asking."""
_PATIENCE = 5.0
"""Seconds that a process has to end by itself."""


def maker(course: Course, crew: Crew, process: bool) -> AbstractContextManager[Begin]:
    """Someone who makes lessons for the time of a block; a process where that is wished for and can be had."""
    able = "fork" in multiprocessing.get_all_start_methods()
    return _by_a_process(course, crew) if process and able else _by_whoever_waits(course, crew)


@contextmanager
def _by_whoever_waits(course: Course, crew: Crew) -> Iterator[Begin]:
    yield lambda moment: partial(course.lesson, moment, crew)


@contextmanager
def _by_a_process(course: Course, crew: Crew) -> Iterator[Begin]:
    """It is told moments and says lessons, and ends when nobody is there to tell it more."""
    system = multiprocessing.get_context("fork")
    here, there = system.Pipe()
    process = system.Process(target=_answer, args=(course, crew, here, there), daemon=True, name="lessons")
    process.start()
    there.close()

    def begin(moment: Moment) -> Callable[[], Lesson]:
        with suppress(OSError):  # nobody listens: that is heard where the lesson is needed
            here.send(moment)
        return partial(_heard, here)

    try:
        yield begin
    finally:
        here.close()
        process.join(_PATIENCE)
        if process.is_alive():
            process.terminate()
            process.join()


def _heard(line: Connection) -> Lesson:
    """The next lesson, or what went wrong with it."""
    try:
        found = line.recv()
    except (EOFError, OSError) as error:
        raise UserError(
            "The process that makes lessons has ended, so there is nothing to learn from; often the machine is out of "
            "memory. Start the same command again: it goes on from the last checkpoint."
        ) from error
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, Lesson)
    return found


def _answer(course: Course, crew: Crew, here: Connection, there: Connection) -> None:
    """What the process does. Ctrl-C is for the one that asks, which then hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    here.close()  # the copy of its own other end: as long as it were open, nobody would seem to have gone
    while True:
        try:
            there.send(_made(course, there.recv(), crew))
        except (EOFError, OSError):
            return


def _made(course: Course, moment: Moment, crew: Crew) -> Lesson | Exception:
    try:
        return course.lesson(moment, crew)
    except Exception as error:  # to be heard where the lesson is needed
        return error
