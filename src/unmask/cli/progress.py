"""Progress for people: a bar with the time left in a terminal, a line now and then elsewhere.

What arrives: how much is done. What leaves: something to look at. What never happens here: slowing the work down.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from unmask.cli.terminal import console, say
from unmask.report.figures import lasted

_EVERY = 5.0


class Tick(Protocol):
    """Says how far the work is, and one short remark."""

    def __call__(self, done: float, remark: str = "") -> None:
        """`done` counts up to the total."""


@contextmanager
def progress(title: str, total: float) -> Iterator[Tick]:
    """Show how a piece of work goes on. Messages go to standard error, so that results can be piped."""
    if console(stderr=True).is_terminal:
        with _bar(title, total) as tick:
            yield tick
        return
    began = last = time.monotonic()
    say(f"{title} ...", beside=True)

    def line(done: float, remark: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _EVERY:
            last = now
            said = f"{title}: {_percent(done, total)} {remark} {time_left(done, total, now - began)}".rstrip()
            say(said, beside=True)

    yield line
    say(f"{title}: done in {duration(time.monotonic() - began)}", beside=True)


@contextmanager
def _bar(title: str, total: float) -> Iterator[Tick]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TextColumn("{task.fields[remark]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True)) as bars:
        task = bars.add_task(title, total=max(total, 1), remark="")
        yield lambda done, remark="": bars.update(task, completed=done, remark=remark)
        bars.update(task, completed=max(total, 1))


def time_left(done: float, total: float, seconds: float) -> str:
    """How long it will still take at the speed so far."""
    if done <= 0 or total <= done:
        return ""
    return f"{duration(seconds * (total - done) / done)} left"


def duration(seconds: float) -> str:
    """Seconds as a person says them, the same in a terminal as on a page."""
    return lasted(seconds)


def _percent(done: float, total: float) -> str:
    return f"{100 * done / total:.0f} %" if total else ""
