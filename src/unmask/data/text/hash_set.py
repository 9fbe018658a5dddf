"""A set of 64-bit hashes that scales to hundreds of millions: eight bytes each.

New hashes collect in a Python set. A full one becomes a sorted array, and arrays of similar size are merged, so that a
lookup searches a handful of arrays.
"""

from __future__ import annotations

import numpy as np

from unmask.core.rng import UInts

_BUFFER_SIZE = 1 << 17


class HashSet64:
    """A growing set of 64-bit hashes."""

    def __init__(self, buffer_size: int = _BUFFER_SIZE) -> None:
        self._buffer_size = buffer_size
        self._buffer: set[int] = set()
        self._runs: list[UInts] = []

    def __len__(self) -> int:
        return len(self._buffer) + sum(map(len, self._runs))

    def contains_any(self, digests: list[int]) -> bool:
        """Whether at least one of the hashes is in the set."""
        if not self._buffer.isdisjoint(digests):
            return True
        if not self._runs:
            return False
        wanted = np.asarray(digests, dtype=np.uint64)
        return any(_in_run(run, wanted) for run in self._runs)

    def add(self, digests: list[int]) -> None:
        """Add hashes."""
        self._buffer.update(digests)
        if len(self._buffer) >= self._buffer_size:
            self._flush_buffer()

    def _flush_buffer(self) -> None:
        run = np.sort(np.fromiter(self._buffer, dtype=np.uint64, count=len(self._buffer)))
        self._buffer.clear()
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.union1d(self._runs.pop(), run)
        self._runs.append(run)

    def save(self) -> UInts:
        """All hashes in order, the input of `load`."""
        waiting = np.fromiter(self._buffer, dtype=np.uint64, count=len(self._buffer))
        return np.unique(np.concatenate([*self._runs, waiting]))

    @staticmethod
    def load(saved: UInts, buffer_size: int = _BUFFER_SIZE) -> HashSet64:
        """The set of saved hashes."""
        digests = HashSet64(buffer_size)
        digests._runs = [np.unique(saved.astype(np.uint64))] if len(saved) else []
        return digests


def _in_run(run: UInts, wanted: UInts) -> bool:
    at = np.minimum(np.searchsorted(run, wanted), len(run) - 1)
    return bool((run[at] == wanted).any())
