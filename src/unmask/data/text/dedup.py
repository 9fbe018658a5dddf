"""Exact and near-duplicate detection over a stream of documents.

No text is kept: a document costs 8 bytes, or 8 bytes per MinHash band.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import Bools, Document, Ints
from unmask.core.rng import DrawPurpose, Key, UInts, randint
from unmask.data.text.hash_set import HashSet64
from unmask.data.text.units.characters import code_points

_ODD = np.uint64(0xD6E8FEB86659FD93)


def hash_text(text: str) -> int:
    """A 64-bit hash of a text. Among 100 million texts, two collide by chance once in 3,700 corpora."""
    return _hash_bytes(text.encode("utf-8", "surrogatepass"))


def _hash_bytes(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


class ExactDeduplicator:
    """Detects texts that occurred before."""

    def __init__(self, known: HashSet64 | None = None) -> None:
        self.known = HashSet64() if known is None else known

    def check_and_add(self, document: Document) -> bool:
        """Whether this text occurred before; it is added."""
        return self.check_and_add_digest(hash_text(document.text))

    def check_and_add_digest(self, number: int) -> bool:
        """The same for a hash that was computed elsewhere, such as in a worker process."""
        if self.known.contains_any([number]):
            return True
        self.known.add([number])
        return False


@dataclass(frozen=True, slots=True)
class MinHashConfig:
    """MinHash with LSH bands: documents that share about `threshold` of their character shingles are duplicates."""

    threshold: float = 0.8
    shingle_size: int = 5
    """Characters per shingle."""
    num_hashes: int = 128
    """Hashes per signature: more of them make the threshold sharper."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise RecipeError(f"--near-duplicate-threshold takes a number between 0 and 1, found {self.threshold}.")
        if self.shingle_size < 1 or self.num_hashes < 2:
            raise RecipeError(
                f"Resemblance needs shingles of at least 1 character and at least 2 hashes, "
                f"found {self.shingle_size} and {self.num_hashes}."
            )

    def bands(self) -> tuple[int, int]:
        """The number of bands and rows whose S-curve has the least error around the threshold."""
        return min(self._shapes(), key=self._error)

    def _shapes(self) -> Iterator[tuple[int, int]]:
        return ((self.num_hashes // rows, rows) for rows in range(1, self.num_hashes + 1))

    def _error(self, shape: tuple[int, int]) -> float:
        """The mean error probability: flagging a pair below the threshold or missing one above it."""
        bands, rows = shape
        alike = (np.arange(1000) + 0.5) / 1000
        flagged = 1 - (1 - alike**rows) ** bands
        return float(np.where(alike < self.threshold, flagged, 1 - flagged).mean())

    def signature(self, text: str) -> UInts:
        """One-permutation MinHash (Broder, 1997; Li et al., 2012): the least hash in each of `num_hashes` bins."""
        hashed = _shingles(" ".join(text.lower().split()), self.shingle_size)
        bins = randint(hashed << np.uint64(32), self.num_hashes)
        least = np.full(self.num_hashes, np.iinfo(np.uint64).max, dtype=np.uint64)
        np.minimum.at(least, bins, hashed)
        filled = np.zeros(self.num_hashes, dtype=np.bool_)
        filled[bins] = True
        return least[_densify_bins(filled)]


def _shingles(text: str, width: int) -> UInts:
    """The hash of every substring of `width` characters; a shorter text is one shingle."""
    codes = code_points(text).astype(np.uint64)
    width = min(width, len(codes))
    rolled = np.zeros(len(codes) - width + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for place in range(width):
            rolled = rolled * _ODD + codes[place : place + len(rolled)]
    return Key.of(0, "shingle").fold_in(rolled.view(np.int64)).state


def _densify_bins(filled: Bools) -> Ints:
    """The source bin of each bin: itself, or for an empty bin a fixed random full one (Shrivastava, 2017)."""
    source = np.arange(len(filled))
    empty = np.flatnonzero(~filled)
    turn = 0
    while len(empty):
        draws = Key.of(0, "borrow", turn).fold_in(empty).bits(DrawPurpose.PLACE, 1)[:, 0]
        candidate = randint(draws, len(filled))
        good = filled[candidate]
        source[empty[good]] = candidate[good]
        empty = empty[~good]
        turn += 1
    return source


class NearDeduplicator:
    """Detects near-duplicates: two texts match if any band of their signatures agrees."""

    def __init__(self, config: MinHashConfig | None = None, known: HashSet64 | None = None) -> None:
        self.config = config or MinHashConfig()
        self.known = HashSet64() if known is None else known
        self._shape = self.config.bands()

    def check_and_add(self, document: Document) -> bool:
        """Whether a near-duplicate occurred before; only a new document is added."""
        bands = self.bands(document.text)
        if self.known.contains_any(bands):
            return True
        self.known.add(bands)
        return False

    def bands(self, text: str) -> list[int]:
        """The hash of each band."""
        bands, rows = self._shape
        table = self.config.signature(text)[: bands * rows].reshape(bands, rows).astype("<u8")
        return [_hash_bytes(bytes([band % 256, band // 256]) + row.tobytes()) for band, row in enumerate(table)]
