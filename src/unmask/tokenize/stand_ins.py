"""Which words may stand in for which: the table that similar-word replacement reads (MacBERT).

What arrives: words as token ids, with their nearest neighbours of the same number of tokens, best first.
What leaves: for many words at once, the ids of a drawn neighbour, or of a random word of the same length.
What never happens here: training vectors. `unmask vectors` makes the table; this file looks words up in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.errors import CorpusError
from unmask.keys import Words, below
from unmask.ragged import offsets as offsets_of
from unmask.records import Bools, Ids, Ints
from unmask.tokenize.lexicon import UNKNOWN, Lexicon, word_lengths

FORMAT = 1
ARRAYS = ("tokens", "offsets", "neighbours", "rows")
"""The arrays of a saved table, each in a `.npy` file of this name; `table.json` says which tokenizer they fit."""
_REMEDY = "Remove that folder; unmask vectors makes it anew."


@dataclass(frozen=True, slots=True, eq=False)
class StandIns:
    """Words and their neighbours: those of word i are `neighbours[rows[i]:rows[i + 1]]`, best first."""

    words: Lexicon
    neighbours: npt.NDArray[np.int32]
    rows: Ints

    @staticmethod
    def linked(words: Lexicon, word: Ints, other: Ints) -> StandIns:
        """A table from pairs of word numbers, the best neighbour of each word first.

        A pair of different lengths, or of a word with itself, is left out: it cannot stand in.
        """
        lengths = words.lengths
        fits = np.flatnonzero((lengths[word] == lengths[other]) & (word != other))
        order = fits[np.argsort(word[fits], kind="stable")]
        rows = offsets_of(np.bincount(word[order], minlength=len(words)))
        return StandIns(words, other[order].astype(np.int32), rows)

    @staticmethod
    def of(words: Sequence[tuple[int, ...]], neighbours: Sequence[Sequence[int]]) -> StandIns:
        """A table from written-out words and, for each, the list numbers of its neighbours; for small tables."""
        tokens = np.array([token for word in words for token in word], dtype=np.int32)
        offsets = offsets_of(np.array([len(word) for word in words], dtype=np.int64))
        lexicon = Lexicon.of(tokens, offsets)
        number = lexicon.find(tokens, offsets[:-1])
        links = [(here, other) for here, row in enumerate(neighbours) for other in row]
        pairs = number[np.array(links, dtype=np.int64).reshape(-1, 2)]
        return StandIns.linked(lexicon, pairs[:, 0], pairs[:, 1])

    @staticmethod
    def load(folder: Path, tokenizer: str) -> StandIns:
        """Read the table in a folder; `tokenizer` is the digest of the tokenizer that it must have been made for."""
        try:
            about = json.loads((folder / "table.json").read_text(encoding="utf-8"))
            made_for, version = str(about["tokenizer"]), about["format"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _damaged(folder, error) from error
        if version != FORMAT:
            raise CorpusError(f"{folder} was written by another version of unmask. {_REMEDY}")
        if made_for != tokenizer:
            raise CorpusError(
                f"The similar words in {folder} were made for another tokenizer (its digest is {made_for[:8]}, this "
                f"corpus has {tokenizer[:8]}). {_REMEDY}"
            )
        try:
            return _loaded(*(np.load(folder / f"{name}.npy", allow_pickle=False) for name in ARRAYS))
        except (OSError, EOFError, ValueError, IndexError) as error:
            raise _damaged(folder, error) from error

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Everything that `load` reads back."""
        values = (self.words.tokens, self.words.offsets, self.neighbours, self.rows)
        return dict(zip(ARRAYS, values, strict=True))

    def __len__(self) -> int:
        return len(self.words)

    def similar(self, ids: Ids, starts: Ints, draws: Words, spare: Ids) -> Ids:
        """A drawn neighbour for each word (words begin at `starts`); a word without one gets a random word.

        The draw of a word is the one at its first token.
        """
        number = self.words.find(ids, starts)
        near = self._draw_neighbour(number, draws[starts])
        other = self.words.draw_other(number, word_lengths(ids, starts), draws[starts])
        result = spare.copy()
        self.words.write(np.where(near == UNKNOWN, other, near), starts, result)
        return result

    def any_of_length(self, ids: Ids, starts: Ints, draws: Words, spare: Ids) -> Ids:
        """Another random word with as many tokens for each word; random tokens (`spare`) where the table has none."""
        number = self.words.find(ids, starts)
        result = spare.copy()
        self.words.write(self.words.draw_other(number, word_lengths(ids, starts), draws[starts]), starts, result)
        return result

    def covered(self, ids: Ids, starts: Ints) -> Bools:
        """Whether each word has at least one neighbour; what an audit reports."""
        some: Bools = self._counts(self.words.find(ids, starts)) > 0
        return some

    def _counts(self, number: Ints) -> Ints:
        """How many neighbours each word has."""
        # One empty row more, so that UNKNOWN, the last entry, counts none.
        return np.append(np.diff(self.rows), 0)[number]

    def _draw_neighbour(self, number: Ints, draws: Words) -> Ints:
        """One neighbour of each word, every one of them equally likely; `UNKNOWN` where there is none."""
        result = np.full(len(number), UNKNOWN, dtype=np.int64)
        count = self._counts(number)
        some = np.flatnonzero(count)
        result[some] = self.neighbours[self.rows[number[some]] + below(draws[some], count[some])]
        return result


def _loaded(tokens: Ids, offsets: Ints, neighbours: Ints, rows: Ints) -> StandIns:
    """A table from its arrays. Words are numbered anew, so a file does not depend on how words are hashed."""
    sound = len(rows) == len(offsets) and offsets[-1] == len(tokens) and rows[-1] == len(neighbours)
    if not sound or (neighbours < 0).any():
        raise ValueError("its arrays do not fit each other")
    words = Lexicon.of(tokens, offsets)
    number = words.find(tokens, offsets[:-1])
    return StandIns.linked(words, np.repeat(number, np.diff(rows)), number[neighbours])


def _damaged(folder: Path, error: Exception) -> CorpusError:
    return CorpusError(f"The similar words in {folder} are damaged ({error}). {_REMEDY}")


NO_STAND_INS = StandIns.of([], [])
