"""The table of similar words for similar-word replacement (MacBERT).

Words are token ids; their neighbors have the same number of tokens and are sorted, best first. `unmask similar-words`
creates the table, and this module looks words up in it, many at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.core.errors import CorpusError
from unmask.core.io.atomic import read_versioned_json
from unmask.core.ragged import offsets as offsets_of
from unmask.core.records import Bools, Ids, Ints
from unmask.core.rng import UInts, randint
from unmask.data.tokenize.word_table import UNKNOWN, WordTable, word_lengths

ARRAYS = ("tokens", "offsets", "neighbours", "rows")
"""The arrays of a saved table, one `.npy` file each; `table.json` holds the digest of the tokenizer."""
_REMEDY = "Remove that folder; unmask similar-words makes it anew."


@dataclass(frozen=True, slots=True, eq=False)
class SimilarWords:
    """Words and their neighbors: those of word i are `neighbours[rows[i]:rows[i + 1]]`, best first."""

    words: WordTable
    neighbours: npt.NDArray[np.int32]
    rows: Ints

    @staticmethod
    def from_pairs(words: WordTable, word: Ints, other: Ints) -> SimilarWords:
        """A table from pairs of word numbers, the best neighbor of each word first.

        Pairs of words of different lengths, or of a word with itself, are left out.
        """
        lengths = words.lengths
        fits = np.flatnonzero((lengths[word] == lengths[other]) & (word != other))
        order = fits[np.argsort(word[fits], kind="stable")]
        rows = offsets_of(np.bincount(word[order], minlength=len(words)))
        return SimilarWords(words, other[order].astype(np.int32), rows)

    @staticmethod
    def of(words: Sequence[tuple[int, ...]], neighbours: Sequence[Sequence[int]]) -> SimilarWords:
        """A table from words and, for each, the list positions of its neighbors; for small tables."""
        tokens = np.array([token for word in words for token in word], dtype=np.int32)
        offsets = offsets_of(np.array([len(word) for word in words], dtype=np.int64))
        lexicon = WordTable.of(tokens, offsets)
        number = lexicon.find(tokens, offsets[:-1])
        links = [(here, other) for here, row in enumerate(neighbours) for other in row]
        pairs = number[np.array(links, dtype=np.int64).reshape(-1, 2)]
        return SimilarWords.from_pairs(lexicon, pairs[:, 0], pairs[:, 1])

    @staticmethod
    def load(folder: Path, tokenizer: str) -> SimilarWords:
        """Read the table in a folder, which must be made for the tokenizer with this digest."""
        try:
            made_for = str(read_versioned_json(folder / "table.json", _REMEDY)["tokenizer"])
        except KeyError as error:
            raise _damaged_error(folder, error) from error
        if made_for != tokenizer:
            raise CorpusError(
                f"The similar words in {folder} were made for another tokenizer (its digest is {made_for[:8]}, this "
                f"corpus has {tokenizer[:8]}). {_REMEDY}"
            )
        try:
            return _from_arrays(*(np.load(folder / f"{name}.npy", allow_pickle=False) for name in ARRAYS))
        except (OSError, EOFError, ValueError, IndexError) as error:
            raise _damaged_error(folder, error) from error

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The arrays that `load` reads."""
        values = (self.words.tokens, self.words.offsets, self.neighbours, self.rows)
        return dict(zip(ARRAYS, values, strict=True))

    def __len__(self) -> int:
        return len(self.words)

    def random_similar(self, ids: Ids, starts: Ints, bits: UInts, fallback: Ids) -> Ids:
        """A random neighbor for each word (words begin at `starts`); a random word for one without neighbors.

        The random bits of a word are those of its first token.
        """
        number = self.words.find(ids, starts)
        near = self._random_neighbour(number, bits[starts])
        other = self.words.random_other(number, word_lengths(ids, starts), bits[starts])
        result = fallback.copy()
        self.words.write(np.where(near == UNKNOWN, other, near), starts, result)
        return result

    def random_of_length(self, ids: Ids, starts: Ints, bits: UInts, fallback: Ids) -> Ids:
        """Another random word of the same length for each word; the tokens of `fallback` where the table has none."""
        number = self.words.find(ids, starts)
        result = fallback.copy()
        self.words.write(self.words.random_other(number, word_lengths(ids, starts), bits[starts]), starts, result)
        return result

    def has_similar(self, ids: Ids, starts: Ints) -> Bools:
        """Whether each word has at least one neighbor."""
        some: Bools = self._counts(self.words.find(ids, starts)) > 0
        return some

    def _counts(self, number: Ints) -> Ints:
        """The number of neighbors of each word."""
        # An empty row at the end for UNKNOWN.
        return np.append(np.diff(self.rows), 0)[number]

    def _random_neighbour(self, number: Ints, bits: UInts) -> Ints:
        """A uniformly drawn neighbor of each word; `UNKNOWN` where there is none."""
        result = np.full(len(number), UNKNOWN, dtype=np.int64)
        count = self._counts(number)
        some = np.flatnonzero(count)
        result[some] = self.neighbours[self.rows[number[some]] + randint(bits[some], count[some])]
        return result


def _from_arrays(tokens: Ids, offsets: Ints, neighbours: Ints, rows: Ints) -> SimilarWords:
    """A table from its arrays. Words are renumbered, so that a file does not depend on the hash function."""
    sound = len(rows) == len(offsets) and offsets[-1] == len(tokens) and rows[-1] == len(neighbours)
    if not sound or (neighbours < 0).any():
        raise ValueError("its arrays do not fit each other")
    words = WordTable.of(tokens, offsets)
    number = words.find(tokens, offsets[:-1])
    return SimilarWords.from_pairs(words, np.repeat(number, np.diff(rows)), number[neighbours])


def _damaged_error(folder: Path, error: Exception) -> CorpusError:
    return CorpusError(f"The similar words in {folder} are damaged ({error}). {_REMEDY}")


NO_SIMILAR_WORDS = SimilarWords.of([], [])
