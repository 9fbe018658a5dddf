"""Ctrl-C ends a run after the current step and a checkpoint; a second Ctrl-C ends it at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

MESSAGE = "stopping when this step is over and saved; Ctrl-C once more stops at once"
_REPEAT_SECONDS = 1.0
"""Seconds after which a signal is another wish: one Ctrl-C may come from the terminal and from who started us."""


@dataclass(slots=True)
class GracefulStop:
    """Whether a user wants to stop."""

    requested: bool = False
    requested_at: float = 0.0

    @staticmethod
    @contextmanager
    def installed(verbose: bool) -> Iterator[GracefulStop]:
        """Listen for the time of a block, and perhaps answer. Only the main thread of a program can listen."""
        stop, usual = GracefulStop(), signal.getsignal(signal.SIGINT)

        def hear(number: int, frame: FrameType | None) -> None:
            if stop.requested and time.monotonic() - stop.requested_at > _REPEAT_SECONDS and callable(usual):
                usual(number, frame)
            if verbose and not stop.requested:
                _print_message()
            stop.requested, stop.requested_at = True, stop.requested_at or time.monotonic()

        if threading.current_thread() is not threading.main_thread() or not callable(usual):
            yield stop  # or nobody is to be stopped here by Ctrl-C
            return
        signal.signal(signal.SIGINT, hear)
        try:
            yield stop
        finally:
            signal.signal(signal.SIGINT, usual)


def _print_message() -> None:
    """To whoever looks on, if anybody does. What was interrupted may be drawing, so none of its ways is taken."""
    with suppress(OSError):
        os.write(2, f"\n{MESSAGE}\n".encode())
