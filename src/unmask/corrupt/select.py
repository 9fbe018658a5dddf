"""Where: which tokens of each row are chosen.

What arrives: an example with its unit bytes, and a key with one state for each row.
What leaves: `Spans` in batch positions; each span is one selection as it was drawn (a token, a word, a run of words).
What never happens here: touching a special token, splitting a unit, or choosing nothing in a row that has free tokens.

A row's budget is `round(rate * length)` tokens, special tokens counted in the length, as in BERT's released code.
Tokens and whole units never exceed it (unless every unit of a tiny row is longer). Runs of several units keep their
length law instead: the run that reaches the budget is the last one and is kept whole (see docs/decisions/0002).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unmask.corrupt.arrange import Candidates, fit, lowest, place_runs
from unmask.errors import RecipeError
from unmask.keys import Key, Lane, choose
from unmask.records import Example, Ints, Layer, Spans


class Select(Protocol):
    """Chooses spans. A frozen dataclass that is its own configuration."""

    @property
    def needs(self) -> frozenset[Layer]:
        """The layers that the corpus must have been segmented into."""

    @property
    def rate(self) -> float:
        """The share of a row's tokens that should be chosen."""

    def __call__(self, example: Example, key: Key) -> Spans:
        """The chosen spans of every row."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Single tokens, drawn without replacement (BERT, RoBERTa, ELECTRA's generator)."""

    rate: float = 0.15
    most: int = 1 << 30
    """At most this many in a row: BERT's `max_predictions_per_seq`."""

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        if self.most < 1:
            raise RecipeError(f"Tokens chooses at least 1 token of a row, found most={self.most}.")

    @property
    def needs(self) -> frozenset[Layer]:
        """Nothing: every text has tokens."""
        return frozenset()

    def __call__(self, example: Example, key: Key) -> Spans:
        """Exactly the budget of each row."""
        words = key.spread(Lane.SELECT, example.rows)
        chosen = lowest(words, example.rows, ~example.fixed, budgets(example.lengths, self.rate, self.most))
        positions = np.flatnonzero(chosen)
        return Spans(positions, positions + 1)


@dataclass(frozen=True, slots=True)
class Units:
    """Whole units of a layer, alone or in runs (BERT-wwm, ERNIE, ALBERT, SpanBERT, MacBERT).

    `run` is the law of the run length: `run[n - 1]` is the probability of n units in a row. A phrase or entity layer is
    chosen first; where it does not fill the budget, words that lie in no phrase or entity do.
    """

    layer: Layer = Layer.WORD
    run: tuple[float, ...] = (1.0,)
    rate: float = 0.15
    inside: Layer = Layer.TOKEN
    """A run stays inside one unit of this layer. `TOKEN` means no limit, but a special token always ends a run."""

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        if self.layer not in (Layer.WORD, Layer.PHRASE, Layer.ENTITY):
            raise RecipeError(f"Units chooses words, phrases or entities, not the layer '{self.layer}'; use Tokens.")
        if self.layer is not Layer.WORD and len(self.run) > 1:
            raise RecipeError(f"Units chooses a {self.layer} whole, one at a time: a run of several is for words only.")
        if self.inside not in (Layer.TOKEN, Layer.SENTENCE):
            raise RecipeError(f"A run can be kept inside sentences only, not inside '{self.inside}'.")
        if min(self.run, default=-1.0) < 0 or abs(sum(self.run) - 1) > 1e-9:
            raise RecipeError(f"The run lengths of Units need probabilities that sum to 1, found {self.run}.")

    @property
    def needs(self) -> frozenset[Layer]:
        """The chosen layer, and words, which fill what it leaves."""
        return frozenset({Layer.WORD, self.layer})

    def __call__(self, example: Example, key: Key) -> Spans:
        """Units in random order while they fit; or runs, placed at random, until the budget is reached."""
        candidates = Candidates.of(example, self.layer, self.inside)
        if len(self.run) == 1:
            return fit(candidates, budgets(example.lengths, self.rate), key)
        return place_runs(candidates, self.run, (self.rate * example.lengths).astype(np.float64), key)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several selections for each row, drawn by share (ERNIE's mixture of levels)."""

    selections: tuple[Select, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if (
            len(self.selections) != len(self.shares)
            or min(self.shares, default=-1) < 0
            or abs(sum(self.shares) - 1) > 1e-9
        ):
            raise RecipeError(f"OneOf needs a share for each selection, summing to 1; found {self.shares}.")

    @property
    def needs(self) -> frozenset[Layer]:
        """Whatever any of the selections needs."""
        return frozenset().union(*(selection.needs for selection in self.selections))

    @property
    def rate(self) -> float:
        """The rates of the selections, averaged by share."""
        return sum(selection.rate * share for selection, share in zip(self.selections, self.shares, strict=True))

    def __call__(self, example: Example, key: Key) -> Spans:
        """The spans of the selection that each row drew."""
        drawn = choose(key.draws(Lane.MIX, 1)[:, 0], self.shares)
        spans = [
            _of_rows(selection(example, key), example.rows, drawn == i) for i, selection in enumerate(self.selections)
        ]
        start, end = (np.concatenate([getattr(found, side) for found in spans]) for side in ("start", "end"))
        order = np.argsort(start)
        return Spans(start[order], end[order])


def budgets(lengths: Ints, rate: float, most: int = 1 << 30) -> Ints:
    """How many tokens each row may choose: `min(most, max(1, round(rate * length)))`."""
    wanted: Ints = np.rint(rate * lengths).astype(np.int64)
    return np.clip(wanted, 1, most)


def geometric(p: float, longest: int) -> tuple[float, ...]:
    """SpanBERT's law: p(n) proportional to (1 - p)^(n - 1), cut at `longest`, renormalised. Mean 3.8 for (0.2, 10)."""
    return _normalised([p * (1 - p) ** n for n in range(longest)])


def inverse(longest: int) -> tuple[float, ...]:
    """ALBERT's law: p(n) proportional to 1/n. For 3: 6/11, 3/11, 2/11."""
    return _normalised([1 / n for n in range(1, longest + 1)])


def _normalised(weights: list[float]) -> tuple[float, ...]:
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def _of_rows(spans: Spans, rows: Ints, wanted: np.ndarray) -> Spans:
    keep = wanted[np.searchsorted(rows, spans.start, side="right") - 1]
    return Spans(spans.start[keep], spans.end[keep])


def _check_rate(rate: float) -> None:
    if not 0 < rate <= 1:
        raise RecipeError(f"The rate of a selection is a share of the tokens between 0 and 1, found {rate}.")
