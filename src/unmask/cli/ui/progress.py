"""Progress in the terminal: a bar with the time left, or a line every few seconds where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from unmask.cli.ui.console import console, print_line
from unmask.core.reporter import ProgressCallback
from unmask.reports.text.number_format import format_duration

if TYPE_CHECKING:
    from rich.progress import Progress

_EVERY = 5.0


class TerminalReporter:
    """Messages and progress on standard error, so that results can be piped."""

    def note(self, sentence: str) -> None:
        """One line."""
        print_line(sentence, stderr=True)

    def progress(self, title: str, total: float) -> AbstractContextManager[ProgressCallback]:
        """A bar in a terminal, a line every few seconds elsewhere."""
        return progress(title, total)


@contextmanager
def progress(title: str, total: float) -> Iterator[ProgressCallback]:
    """Progress of one piece of work, on standard error."""
    if console(stderr=True).is_terminal:
        with _columns() as bars:
            bar = _Bar(bars, title, max(total, 1))
            yield bar
            bar.fill()
        return
    began = time.monotonic()
    print_line(f"{title} ...", stderr=True)
    yield _Lines(title, total)
    print_line(f"{title}: done in {duration(time.monotonic() - began)}", stderr=True)


class _Lines:
    """A line every few seconds. The speed is that since the first tick: work may begin in the middle."""

    def __init__(self, title: str, total: float) -> None:
        self.title, self.total = title, total
        self.first, self.started_at = 0.0, 0.0
        self.last = time.monotonic()

    def __call__(self, done: float, remark: str = "") -> None:
        now = time.monotonic()
        if not self.started_at:
            self.first, self.started_at = done, now
        if now - self.last >= _EVERY:
            self.last = now
            left = time_left(done - self.first, self.total - self.first, now - self.started_at)
            print_line(f"{self.title}: {_percent(done, self.total)} {remark} {left}".rstrip(), stderr=True)

    def note(self, sentence: str) -> None:
        print_line(sentence, stderr=True)


class _Bar:
    """A bar that moves, with the time left."""

    def __init__(self, bars: Progress, title: str, total: float) -> None:
        self.bars, self.total = bars, total
        self.task = bars.add_task(title, total=total, remark="")
        self.is_started = False

    def __call__(self, done: float, remark: str = "") -> None:
        if self.is_started:
            self.bars.update(self.task, completed=done, remark=remark)
        else:
            # What was done before has no speed. (Rich counts in any number, but its type here is int.)
            self.bars.reset(self.task, completed=done, remark=remark)  # type: ignore[arg-type]
        self.is_started = True

    def note(self, sentence: str) -> None:
        self.bars.console.print(sentence, markup=False, soft_wrap=True)

    def fill(self) -> None:
        """All is done."""
        self.bars.update(self.task, completed=self.total)


def _columns() -> Progress:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TextColumn("{task.fields[remark]}"),
        TimeRemainingColumn(),
        console=console(stderr=True),
    )


def time_left(done: float, total: float, seconds: float) -> str:
    """How long it will still take at the speed so far."""
    if done <= 0 or total <= done:
        return ""
    return f"{duration(seconds * (total - done) / done)} left"


def duration(seconds: float) -> str:
    """A duration in words, the same in a terminal as on a page."""
    return format_duration(seconds)


def _percent(done: float, total: float) -> str:
    return f"{100 * done / total:.0f} %" if total else ""
