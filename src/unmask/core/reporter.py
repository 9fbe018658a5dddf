"""Progress and messages of a long operation: the protocols that a caller implements, and a silent default.

The library prints nothing. A flow takes a `Reporter`; the command line passes one that writes to the terminal.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class ProgressCallback(Protocol):
    """Receives the amount of work that is done, with a short remark."""

    def __call__(self, done: float, remark: str = "") -> None:
        """`done` counts up to the total."""

    def note(self, sentence: str) -> None:
        """A message that stays visible above a moving bar."""


class Reporter(Protocol):
    """Receives the messages and the progress of an operation."""

    def note(self, sentence: str) -> None:
        """One message."""

    def progress(self, title: str, total: float) -> AbstractContextManager[ProgressCallback]:
        """Progress of one piece of work, for the time of a block."""


class _SilentProgress:
    def __call__(self, done: float, remark: str = "") -> None:
        pass

    def note(self, sentence: str) -> None:
        pass


class SilentReporter:
    """A reporter that discards everything."""

    def note(self, sentence: str) -> None:
        """Discard a message."""

    def progress(self, title: str, total: float) -> AbstractContextManager[ProgressCallback]:
        """Discard the progress."""
        return nullcontext(_SilentProgress())


SILENT = SilentReporter()
