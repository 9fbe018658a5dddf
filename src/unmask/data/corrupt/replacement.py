"""What is shown instead: the ids that stand at the chosen positions.

What arrives: the chosen positions, and how they group into words and spans.
What leaves: new ids for them; some are masks, some random, some similar words, some the truth.
What never happens here: deciding where. And no share is hidden: the shares sum to one or the part refuses to exist.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import StrEnum

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.records import Ids, Ints
from unmask.core.rng import DrawPurpose, Key, categorical
from unmask.data.tokenize.vocab import Vocab


class ReplaceBy(StrEnum):
    """Who draws once: every token, every word of a span, or the span as a whole."""

    TOKEN = "token"
    WORD = "word"
    SPAN = "span"


@dataclass(frozen=True, slots=True)
class SelectedTokens:
    """The chosen positions of a batch, in order, with the row and the group heads of each."""

    ids: Ids
    """The true ids."""
    row: Ints
    column: Ints
    """The position inside the row."""
    word: Ints
    """For each chosen position, the number (into these arrays) of the first position of its word."""
    span: Ints
    """For each chosen position, the number of the first position of its span."""


@dataclass(frozen=True, slots=True)
class Replace:
    """The shares of what is shown: the mask, a random token, the truth, or a similar word.

    BERT draws per token (80 / 10 / 10), SpanBERT once for a whole span, MacBERT once a word and never shows the mask.
    A similar word comes from the vocabulary's table of stand-ins and has as many tokens; where there is none, a random
    word of the same length stands in.
    """

    mask: float = 0.0
    random: float = 0.0
    keep: float = 0.0
    similar: float = 0.0
    per: ReplaceBy = ReplaceBy.TOKEN

    def __post_init__(self) -> None:
        shares = self._probabilities
        if min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise RecipeError(
                f"Replace needs shares that sum to 1; found mask {self.mask}, random {self.random}, keep {self.keep}, "
                f"similar {self.similar}, which sum to {sum(shares):g}."
            )
        if self.similar and self.per is ReplaceBy.TOKEN:
            raise RecipeError("Replace(similar=...) exchanges whole words: set per=Per.WORD or per=Per.SPAN.")

    @property
    def _probabilities(self) -> tuple[float, ...]:
        return tuple(float(share) for share in astuple(self)[:4])

    def __call__(self, chosen: SelectedTokens, vocab: Vocab, key: Key) -> Ids:
        """The ids to show at the chosen positions."""
        head = {ReplaceBy.TOKEN: np.arange(len(chosen.ids)), ReplaceBy.WORD: chosen.word, ReplaceBy.SPAN: chosen.span}[
            self.per
        ]
        action = categorical(key.bits_at(DrawPurpose.SHOW, chosen.row[head], chosen.column[head]), self._probabilities)
        result = np.where(action == 0, np.int32(vocab.mask), chosen.ids)
        if self.similar:
            return self._replace_words(result, action, chosen, vocab, key)
        noisy = np.flatnonzero(action == 1)
        result[noisy] = vocab.random_ordinary(key.bits_at(DrawPurpose.TOKEN, chosen.row[noisy], chosen.column[noisy]))
        return result

    def _replace_words(self, result: Ids, action: Ints, chosen: SelectedTokens, vocab: Vocab, key: Key) -> Ids:
        """Exchange whole words: similar ones where the table has them, random ones of the same length elsewhere."""
        for wanted, exchange in ((3, vocab.similar_words.random_similar), (1, vocab.similar_words.random_of_length)):
            place = np.flatnonzero(action == wanted)
            if len(place):
                draws = key.bits_at(DrawPurpose.WORD, chosen.row[place], chosen.column[chosen.word[place]])
                spare = vocab.random_ordinary(key.bits_at(DrawPurpose.TOKEN, chosen.row[place], chosen.column[place]))
                result[place] = exchange(chosen.ids[place], _starts(chosen.word[place]), draws, spare)
        return result


def _starts(head: Ints) -> Ints:
    """Where a new word begins in a list of word heads."""
    return np.flatnonzero(np.append(True, head[1:] != head[:-1]))
