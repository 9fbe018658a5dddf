"""Memory of the host that comes and goes with every lesson.

What arrives: nothing. What leaves: a C library that keeps what was freed for whoever asks next.
What never happens here: a failure. A library that has no such switch goes on as it was.

By default glibc gives memory above a megabyte back to the system as soon as it is free. Every lesson then asks for its
arrays anew, page by page, and whenever pages are taken away from a process, all cores that it runs on are interrupted.
On a virtual machine with 16 cores that was a third of the time of a lesson.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_TRIM, _PAD, _MAP = -1, -2, -3
"""What glibc calls M_TRIM_THRESHOLD, M_TOP_PAD and M_MMAP_THRESHOLD."""
_KEEPS = {_TRIM: 1 << 30, _PAD: 64 << 20, _MAP: 32 << 20}
"""Bytes: kept at most, asked for at once, and from which on memory is taken from the system apart (glibc's limit)."""


def keep_freed_memory() -> None:
    """Let freed memory of this process stay at hand."""
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in _KEEPS.items():
            mallopt(option, value)
