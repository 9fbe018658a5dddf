"""A set of 64-bit numbers that can grow to hundreds of millions: eight bytes each.

What arrives: numbers, a few at a time. What leaves: whether each was there before.
What never happens here: forgetting. What is saved can be loaded, and answers are the same.

New numbers wait in a small Python set. When it is full they become a sorted array, and arrays of like size are merged,
so only a handful of arrays is ever searched.
"""

from __future__ import annotations

import numpy as np

from unmask.keys import Words

_WAITING = 1 << 17


class DigestSet:
    """Remembers 64-bit numbers."""

    def __init__(self, waiting: int = _WAITING) -> None:
        self._most = waiting
        self._waiting: set[int] = set()
        self._runs: list[Words] = []

    def __len__(self) -> int:
        return len(self._waiting) + sum(map(len, self._runs))

    def holds_any(self, digests: list[int]) -> bool:
        """Whether at least one of these numbers was added before."""
        if not self._waiting.isdisjoint(digests):
            return True
        if not self._runs:
            return False
        wanted = np.asarray(digests, dtype=np.uint64)
        return any(_in_run(run, wanted) for run in self._runs)

    def add(self, digests: list[int]) -> None:
        """Remember these numbers."""
        self._waiting.update(digests)
        if len(self._waiting) >= self._most:
            self._settle()

    def _settle(self) -> None:
        run = np.sort(np.fromiter(self._waiting, dtype=np.uint64, count=len(self._waiting)))
        self._waiting.clear()
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.union1d(self._runs.pop(), run)
        self._runs.append(run)

    def save(self) -> Words:
        """Every number, in order: what `load` makes an equal set from."""
        waiting = np.fromiter(self._waiting, dtype=np.uint64, count=len(self._waiting))
        return np.unique(np.concatenate([*self._runs, waiting]))

    @staticmethod
    def load(saved: Words, waiting: int = _WAITING) -> DigestSet:
        """The set that was saved."""
        digests = DigestSet(waiting)
        digests._runs = [np.unique(saved.astype(np.uint64))] if len(saved) else []
        return digests


def _in_run(run: Words, wanted: Words) -> bool:
    at = np.minimum(np.searchsorted(run, wanted), len(run) - 1)
    return bool((run[at] == wanted).any())
