"""Masking: choose tokens, words, n-grams, spans, phrases or entities, and replace them (a cloze).

A selector chooses spans under a budget (`RandomTokens`, `WholeUnits`, `OneOfSelectors`); `Replace` decides what takes
their place: a mask, a random token, a similar word, or the token itself (BERT, section 3.1). Lengths never change, no
special token is chosen, and nothing is predicted at a position that was not chosen.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.ragged import concat_ranges, sample_exact
from unmask.core.records import Cloze, Ids, InputsAndTargets, Ints, RowBatch, Spans, Target, UnitFlag, UnitKind
from unmask.core.rng import DrawPurpose, Key, categorical
from unmask.data.corrupt.span_sampling import UnitCandidates, sample_runs, sample_units
from unmask.data.input_formats.row_plan import inputs_like, row_class_targets
from unmask.data.tokenize.vocab import Vocab


def _selected_tokens(example: RowBatch, spans: Spans, positions: Ints) -> SelectedTokens:
    row = np.repeat(np.arange(len(example)), np.diff(np.searchsorted(positions, example.rows)))
    lengths = spans.lengths
    span = np.repeat(np.cumsum(lengths) - lengths, lengths)
    begins = (example.units.bits[positions] & UnitFlag.WORD) != 0
    begins[span] = True
    word = np.maximum.accumulate(np.where(begins, np.arange(len(positions)), 0))
    return SelectedTokens(example.ids[positions], row, positions - example.rows[row], word, span)


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
            raise RecipeError(
                f"RandomTokens chooses at least 1 token of a row, found max_predictions={self.max_predictions}."
            )

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
            raise RecipeError(f"WholeUnits chooses words, phrases or entities, not '{self.layer}'; use RandomTokens.")
        if self.layer is not UnitKind.WORD and len(self.run_lengths) > 1:
            raise RecipeError(f"WholeUnits chooses each {self.layer} alone: a run of several is for words only.")
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
            raise RecipeError(
                f"OneOfSelectors needs a probability for each selector, summing to 1; found {self.probabilities}."
            )

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
    A similar word comes from the vocabulary's table of similar words and has as many tokens; where there is none, a
    random word of the same length is taken.
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
            raise RecipeError(
                "Replace(similar=...) exchanges whole words: set per=ReplaceBy.WORD or per=ReplaceBy.SPAN."
            )

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


@dataclass(frozen=True, slots=True)
class MaskTokens:
    """Hide the selected tokens and ask for them.

    `MaskTokens()` is BERT's rule: 15 % of the tokens; of these 80 % become [MASK], 10 % a random token, 10 % stay.
    """

    select: Selector = RandomTokens()
    replace: Replace = Replace(mask=0.8, random=0.1, keep=0.1)
    target_types: ClassVar[tuple[type[Target], ...]] = (Cloze,)

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """What the selection needs."""
        return self.select.required_units

    def __call__(self, example: RowBatch, vocab: Vocab, key: Key) -> InputsAndTargets:
        """Select, replace, and keep the answers."""
        spans = self.select(example, key)
        positions = concat_ranges(spans.start, spans.lengths)
        chosen = _selected_tokens(example, spans, positions)
        ids = example.ids.copy()
        ids[positions] = self.replace(chosen, vocab, key)
        return InputsAndTargets(
            inputs_like(example, ids), (Cloze(positions, chosen.ids, spans), *row_class_targets(example))
        )

    def restore(self, instance: InputsAndTargets, vocab: Vocab) -> tuple[Ids, Ints]:
        """Write the answers back."""
        cloze = instance.targets[0]
        assert isinstance(cloze, Cloze)
        ids = instance.inputs.ids.copy()
        ids[cloze.positions] = cloze.answers
        return ids, instance.inputs.rows
