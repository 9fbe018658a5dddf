"""Measures of replacements at selected positions, compared with their declared fractions.

They are read from inputs and targets: a random draw that equals the original looks like a kept token, and the expected
fractions include that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.audits.finding import (
    AtLeast,
    Expected,
    Finding,
    FindingUnit,
    Numbers,
    labelled_by_target,
    plural,
    ratio,
    sampling_tolerance,
    violation,
)
from unmask.audits.rows import (
    AuditBatch,
    AuditedTokens,
    MeasureOutput,
    audited_tokens,
    cloze_spans,
    to_mask,
    unit_starts,
)
from unmask.core.ragged import concat_ranges, offsets, row_sums
from unmask.core.records import Bools, Ints, UnitKind
from unmask.data.corrupt.masking import Replace, ReplaceBy
from unmask.data.tokenize.similar_word_table import SimilarWords
from unmask.data.tokenize.vocab import Vocab
from unmask.data.tokenize.word_table import UNKNOWN

MIN_COVERAGE = 0.5
"""The least fraction of selected words that should have a similar word."""


@dataclass(frozen=True, slots=True)
class TokenShares:
    """Masked, random and kept tokens of token replacement. One draw decides for a token, word or span."""

    mask: float
    random: float
    keep: float
    per: ReplaceBy = ReplaceBy.TOKEN

    def count(self, batch: AuditBatch) -> Numbers:
        """Tokens, masks, kept, chance hits of random draws, and the squared sizes of units with one draw."""
        found = audited_tokens(batch)
        size = np.diff(_draw_groups(batch, self.per), append=len(found.targets)).astype(np.float64)
        masked = found.inputs == batch.vocab.mask
        kept = ~masked & (found.inputs == found.targets)
        hits = to_mask(batch.vocab.size, batch.vocab.ordinary)[found.targets].sum() / len(batch.vocab.ordinary)
        return np.array([len(masked), masked.sum(), kept.sum(), hits, (size**2).sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """Fractions within the tolerance for the number of draws."""
        tokens, masked, kept, hits, squares = total
        draws = ratio(tokens**2, squares)
        lucky = self.random * ratio(hits, tokens)
        for name, number, expected in (
            ("mask", masked, self.mask),
            ("random", tokens - masked - kept, self.random - lucky),
            ("kept", kept, self.keep + lucky),
        ):
            yield _share_finding(f"shown: {name}", number, tokens, expected, draws)


@dataclass(frozen=True, slots=True)
class WordShares:
    """Similar, random, masked and kept words of word replacement."""

    replace: Replace

    def count(self, batch: AuditBatch) -> Numbers:
        """Measured and expected numbers of masked, similar and kept words; words covered; squared draw sizes; words."""
        found, words = audited_tokens(batch), _draw_groups(batch, ReplaceBy.WORD)
        table = batch.vocab.similar_words
        masked, kept = (
            _all_in_group(found.inputs == batch.vocab.mask, words),
            _all_in_group(found.inputs == found.targets, words),
        )
        similar = _is_similar(found, words, table) & ~masked & ~kept
        covered = table.has_similar(found.targets, words)
        truth, near = _random_probabilities(found, words, batch.vocab)
        spread = self.replace.random + self.replace.similar * ~covered
        expected = (
            self.replace.mask,
            self.replace.similar * covered + spread * near,
            self.replace.keep + spread * truth,
        )
        draws = np.searchsorted(words, _draw_groups(batch, self.replace.per))
        size = np.diff(draws, append=len(words)).astype(np.float64)
        possible = [np.broadcast_to(share, len(words)).sum() for share in expected]
        measured = (masked.sum(), similar.sum(), kept.sum())
        return np.array([*measured, *possible, covered.sum(), (size**2).sum(), len(words)], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """Fractions within the tolerance, given the coverage of the table."""
        measured, possible, (covered, squares, words) = total[:3], total[3:6], total[6:]
        draws = ratio(words**2, squares)
        names = (
            "shown: mask words",
            labelled_by_target("shown: similar words", self.replace.similar),
            "shown: kept words",
            labelled_by_target("shown: random words", self.replace.random),
        )
        numbers = [*measured, words - measured.sum()]
        shares = [*(ratio(number, words) for number in possible), 1 - ratio(possible.sum(), words)]
        for name, number, expected in zip(names, numbers, shares, strict=True):
            yield _share_finding(name, number, words, expected, draws)
        yield _coverage(covered, words)


@dataclass(frozen=True, slots=True)
class ConsistentReplacement:
    """Words or spans that are masked in part, although one draw decides for the whole."""

    per: ReplaceBy

    def count(self, batch: AuditBatch) -> Numbers:
        """The number of such units."""
        groups, masked = _draw_groups(batch, self.per), audited_tokens(batch).inputs == batch.vocab.mask
        number = np.add.reduceat(masked, groups, dtype=np.int64)
        size = np.diff(groups, append=len(masked))
        return np.array([((number > 0) & (number < size)).sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """None is allowed."""
        yield violation(f"{plural(self.per)} shown as a mask in part", total[0])


@dataclass(frozen=True, slots=True)
class OrdinaryReplacement:
    """Random or similar tokens that are special tokens, which would reveal the target."""

    def count(self, batch: AuditBatch) -> Numbers:
        """The number of such tokens."""
        found, plain = audited_tokens(batch), to_mask(batch.vocab.size, batch.vocab.ordinary)
        changed = (found.inputs != batch.vocab.mask) & (found.inputs != found.targets)
        return np.array([(changed & ~plain[found.inputs]).sum()], dtype=np.float64)

    def to_findings(self, total: Numbers) -> MeasureOutput:
        """None is allowed."""
        yield violation("random tokens that are special", total[0])


def _share_finding(name: str, number: float, total: float, expected: float, draws: float) -> Finding:
    """The tolerance is 0 for a fraction of 0."""
    slack = sampling_tolerance(expected, draws) if expected > 0 else 0.0
    return Finding(name, ratio(number, total), Expected(expected, slack), FindingUnit.SHARE)


def _coverage(covered: float, words: float) -> Finding:
    """The coverage of the table of similar words in this text."""
    advice = (
        "Fewer than half of the chosen words have a similar one; the others are shown as random words. Run unmask "
        "vectors on more text, or give it --synonyms FILE."
        if covered
        else "Make a table of similar words with: unmask similar-words --data FOLDER"
    )
    name = "chosen words that have a similar word"
    return Finding(name, ratio(covered, words), AtLeast(MIN_COVERAGE), FindingUnit.SHARE, advice)


def _draw_groups(batch: AuditBatch, per: ReplaceBy) -> Ints:
    """The index of the first selected token of every unit with one draw."""
    found = audited_tokens(batch)
    if per is ReplaceBy.TOKEN:
        return np.arange(len(found.targets))
    spans = cloze_spans(batch)
    heads = to_mask(len(found.targets), np.cumsum(spans.lengths) - spans.lengths)
    if per is ReplaceBy.WORD:
        heads |= unit_starts(batch.example, UnitKind.WORD)[found.positions]
    return np.flatnonzero(heads)


def _all_in_group(flags: Bools, groups: Ints) -> Bools:
    return np.logical_and.reduceat(flags, groups)


def _is_similar(found: AuditedTokens, words: Ints, table: SimilarWords) -> Bools:
    """The words that became one of their neighbors in the table."""
    truth, shown = table.words.find(found.targets, words), table.words.find(found.inputs, words)
    count = _num_similar(truth, table)
    known = np.flatnonzero(count)
    listed = table.neighbours[concat_ranges(table.rows[truth[known]], count[known])] == np.repeat(
        shown[known], count[known]
    )
    result = np.zeros(len(words), dtype=np.bool_)
    result[known] = row_sums(listed, offsets(count[known])) > 0
    return result


def _random_probabilities(found: AuditedTokens, words: Ints, vocab: Vocab) -> tuple[Numbers, Numbers]:
    """For each word, the chance that a random word is the word itself, or one of its neighbors.

    A random word is another one of the table of the same length; random tokens where the table has none.
    """
    table, size = vocab.similar_words, np.diff(words, append=len(found.targets))
    truth = table.words.find(found.targets, words)
    alike = np.bincount(table.words.lengths, minlength=int(size.max(initial=0)) + 1)[size] - (truth != UNKNOWN)
    near = _num_similar(truth, table) / np.maximum(alike, 1)
    return np.where(alike > 0, 0.0, float(len(vocab.ordinary)) ** -size), near


def _num_similar(number: Ints, table: SimilarWords) -> Ints:
    """The number of neighbors of each word in the table."""
    count = np.zeros(len(number), dtype=np.int64)
    known = number != UNKNOWN
    count[known] = np.diff(table.rows)[number[known]]
    return count
