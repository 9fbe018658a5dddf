"""Which words may stand in for which: the table that similar-word replacement reads (MacBERT).

What arrives: words as token ids, with their nearest neighbours of the same number of tokens, best first.
What leaves: for many words at once, the ids of a drawn neighbour, or of a random word of the same length.
What never happens here: training vectors. `unmask vectors` makes the table; this file looks words up in it.
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
"""The arrays of a saved table, each in a `.npy` file of this name; `table.json` says which tokenizer they fit."""
_REMEDY = "Remove that folder; unmask vectors makes it anew."


@dataclass(frozen=True, slots=True, eq=False)
class SimilarWords:
    """Words and their neighbours: those of word i are `neighbours[rows[i]:rows[i + 1]]`, best first."""

    words: WordTable
    neighbours: npt.NDArray[np.int32]
    rows: Ints

    @staticmethod
    def from_pairs(words: WordTable, word: Ints, other: Ints) -> SimilarWords:
        """A table from pairs of word numbers, the best neighbour of each word first.

        A pair of different lengths, or of a word with itself, is left out: it cannot stand in.
        """
        lengths = words.lengths
        fits = np.flatnonzero((lengths[word] == lengths[other]) & (word != other))
        order = fits[np.argsort(word[fits], kind="stable")]
        rows = offsets_of(np.bincount(word[order], minlength=len(words)))
        return SimilarWords(words, other[order].astype(np.int32), rows)

    @staticmethod
    def of(words: Sequence[tuple[int, ...]], neighbours: Sequence[Sequence[int]]) -> SimilarWords:
        """A table from written-out words and, for each, the list numbers of its neighbours; for small tables."""
        tokens = np.array([token for word in words for token in word], dtype=np.int32)
        offsets = offsets_of(np.array([len(word) for word in words], dtype=np.int64))
        lexicon = WordTable.of(tokens, offsets)
        number = lexicon.find(tokens, offsets[:-1])
        links = [(here, other) for here, row in enumerate(neighbours) for other in row]
        pairs = number[np.array(links, dtype=np.int64).reshape(-1, 2)]
        return SimilarWords.from_pairs(lexicon, pairs[:, 0], pairs[:, 1])

    @staticmethod
    def load(folder: Path, tokenizer: str) -> SimilarWords:
        """Read the table in a folder; `tokenizer` is the digest of the tokenizer that it must have been made for."""
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
        """Everything that `load` reads back."""
        values = (self.words.tokens, self.words.offsets, self.neighbours, self.rows)
        return dict(zip(ARRAYS, values, strict=True))

    def __len__(self) -> int:
        return len(self.words)

    def random_similar(self, ids: Ids, starts: Ints, bits: UInts, fallback: Ids) -> Ids:
        """A drawn neighbour for each word (words begin at `starts`); a word without one gets a random word.

        The draw of a word is the one at its first token.
        """
        number = self.words.find(ids, starts)
        near = self._random_neighbour(number, bits[starts])
        other = self.words.random_other(number, word_lengths(ids, starts), bits[starts])
        result = fallback.copy()
        self.words.write(np.where(near == UNKNOWN, other, near), starts, result)
        return result

    def random_of_length(self, ids: Ids, starts: Ints, bits: UInts, fallback: Ids) -> Ids:
        """Another random word with as many tokens for each word; random tokens (`spare`) where the table has none."""
        number = self.words.find(ids, starts)
        result = fallback.copy()
        self.words.write(self.words.random_other(number, word_lengths(ids, starts), bits[starts]), starts, result)
        return result

    def has_similar(self, ids: Ids, starts: Ints) -> Bools:
        """Whether each word has at least one neighbour; what an audit reports."""
        some: Bools = self._counts(self.words.find(ids, starts)) > 0
        return some

    def _counts(self, number: Ints) -> Ints:
        """How many neighbours each word has."""
        # One empty row more, so that UNKNOWN, the last entry, counts none.
        return np.append(np.diff(self.rows), 0)[number]

    def _random_neighbour(self, number: Ints, bits: UInts) -> Ints:
        """One neighbour of each word, every one of them equally likely; `UNKNOWN` where there is none."""
        result = np.full(len(number), UNKNOWN, dtype=np.int64)
        count = self._counts(number)
        some = np.flatnonzero(count)
        result[some] = self.neighbours[self.rows[number[some]] + randint(bits[some], count[some])]
        return result


def _from_arrays(tokens: Ids, offsets: Ints, neighbours: Ints, rows: Ints) -> SimilarWords:
    """A table from its arrays. Words are numbered anew, so a file does not depend on how words are hashed."""
    sound = len(rows) == len(offsets) and offsets[-1] == len(tokens) and rows[-1] == len(neighbours)
    if not sound or (neighbours < 0).any():
        raise ValueError("its arrays do not fit each other")
    words = WordTable.of(tokens, offsets)
    number = words.find(tokens, offsets[:-1])
    return SimilarWords.from_pairs(words, np.repeat(number, np.diff(rows)), number[neighbours])


def _damaged_error(folder: Path, error: Exception) -> CorpusError:
    return CorpusError(f"The similar words in {folder} are damaged ({error}). {_REMEDY}")


NO_SIMILAR_WORDS = SimilarWords.of([], [])
