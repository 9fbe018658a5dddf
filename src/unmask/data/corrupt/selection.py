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

from unmask.core.errors import RecipeError
from unmask.core.records import Ints, RowBatch, Spans, UnitKind
from unmask.core.rng import DrawPurpose, Key, categorical
from unmask.data.corrupt.span_sampling import UnitCandidates, sample_exact, sample_runs, sample_units


class Selector(Protocol):
    """Chooses spans. A frozen dataclass that is its own configuration."""

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """The layers that the corpus must have been segmented into."""

    @property
    def rate(self) -> float:
        """The share of a row's tokens that should be chosen."""

    def __call__(self, example: RowBatch, key: Key) -> Spans:
        """The chosen spans of every row."""


@dataclass(frozen=True, slots=True)
class RandomTokens:
    """Single tokens, drawn without replacement (BERT, RoBERTa, ELECTRA's generator)."""

    rate: float = 0.15
    max_predictions: int = 1 << 30
    """At most this many in a row: BERT's `max_predictions_per_seq`."""

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        if self.max_predictions < 1:
            raise RecipeError(f"Tokens chooses at least 1 token of a row, found most={self.max_predictions}.")

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """Nothing: every text has tokens."""
        return frozenset()

    def __call__(self, example: RowBatch, key: Key) -> Spans:
        """Exactly the budget of each row."""
        words = key.bits_per_token(DrawPurpose.SELECT, example.rows)
        chosen = sample_exact(
            words, example.rows, ~example.protected, mask_budgets(example.lengths, self.rate, self.max_predictions)
        )
        positions = np.flatnonzero(chosen)
        return Spans(positions, positions + 1)


@dataclass(frozen=True, slots=True)
class WholeUnits:
    """Whole units of a layer, alone or in runs (BERT-wwm, ERNIE, ALBERT, SpanBERT, MacBERT).

    `run` is the law of the run length: `run[n - 1]` is the probability of n units in a row. A phrase or entity layer is
    chosen first; where it does not fill the budget, words that lie in no phrase or entity do.
    """

    layer: UnitKind = UnitKind.WORD
    run_lengths: tuple[float, ...] = (1.0,)
    rate: float = 0.15
    inside: UnitKind = UnitKind.TOKEN
    """A run stays inside one unit of this layer. `TOKEN` means no limit, but a special token always ends a run."""

    def __post_init__(self) -> None:
        _check_rate(self.rate)
        if self.layer not in (UnitKind.WORD, UnitKind.PHRASE, UnitKind.ENTITY):
            raise RecipeError(f"Units chooses words, phrases or entities, not the layer '{self.layer}'; use Tokens.")
        if self.layer is not UnitKind.WORD and len(self.run_lengths) > 1:
            raise RecipeError(f"Units chooses a {self.layer} whole, one at a time: a run of several is for words only.")
        if self.inside not in (UnitKind.TOKEN, UnitKind.SENTENCE):
            raise RecipeError(f"A run can be kept inside sentences only, not inside '{self.inside}'.")
        if min(self.run_lengths, default=-1.0) < 0 or abs(sum(self.run_lengths) - 1) > 1e-9:
            raise RecipeError(f"The run lengths of Units need probabilities that sum to 1, found {self.run_lengths}.")

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """The chosen layer, and words, which fill what it leaves."""
        return frozenset({UnitKind.WORD, self.layer})

    def __call__(self, example: RowBatch, key: Key) -> Spans:
        """Units in random order while they fit; or runs, placed at random, until the budget is reached."""
        candidates = UnitCandidates.of(example, self.layer, self.inside)
        if len(self.run_lengths) == 1:
            return sample_units(candidates, mask_budgets(example.lengths, self.rate), key)
        return sample_runs(candidates, self.run_lengths, (self.rate * example.lengths).astype(np.float64), key)


@dataclass(frozen=True, slots=True)
class OneOfSelectors:
    """One of several selections for each row, drawn by share (ERNIE's mixture of levels)."""

    selectors: tuple[Selector, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        if (
            len(self.selectors) != len(self.probabilities)
            or min(self.probabilities, default=-1) < 0
            or abs(sum(self.probabilities) - 1) > 1e-9
        ):
            raise RecipeError(f"OneOf needs a share for each selection, summing to 1; found {self.probabilities}.")

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """Whatever any of the selections needs."""
        return frozenset().union(*(selection.required_units for selection in self.selectors))

    @property
    def rate(self) -> float:
        """The rates of the selections, averaged by share."""
        return sum(selection.rate * share for selection, share in zip(self.selectors, self.probabilities, strict=True))

    def __call__(self, example: RowBatch, key: Key) -> Spans:
        """The spans of the selection that each row drew."""
        drawn = categorical(key.bits(DrawPurpose.MIX, 1)[:, 0], self.probabilities)
        spans = [
            _of_rows(selection(example, key), example.rows, drawn == i) for i, selection in enumerate(self.selectors)
        ]
        start, end = (np.concatenate([getattr(found, side) for found in spans]) for side in ("start", "end"))
        order = np.argsort(start)
        return Spans(start[order], end[order])


def mask_budgets(lengths: Ints, rate: float, max_predictions: int = 1 << 30) -> Ints:
    """How many tokens each row may choose: `min(most, max(1, round(rate * length)))`."""
    wanted: Ints = np.rint(rate * lengths).astype(np.int64)
    return np.clip(wanted, 1, max_predictions)


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
