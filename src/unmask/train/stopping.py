"""Ctrl-C: heard at once, obeyed when the step is over, so that nothing that was learned is lost.

What arrives: the wish of a user to stop. What leaves: whether there was one.
What never happens here: a user who has to wait. Whoever wishes it once more is obeyed at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class Stop:
    """Whether a user wants to stop."""

    wished: bool = False

    @staticmethod
    @contextmanager
    def heard(answer: Callable[[], None]) -> Iterator[Stop]:
        """Listen for the time of a block, and `answer` at once. Only the main thread of a program can listen."""
        stop, usual = Stop(), signal.getsignal(signal.SIGINT)

        def hear(_number: int, _frame: FrameType | None) -> None:
            signal.signal(signal.SIGINT, usual)
            stop.wished = True
            answer()

        if threading.current_thread() is not threading.main_thread() or not callable(usual):
            yield stop  # or nobody is to be stopped here by Ctrl-C
            return
        signal.signal(signal.SIGINT, hear)
        try:
            yield stop
        finally:
            signal.signal(signal.SIGINT, usual)
