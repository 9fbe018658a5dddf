"""Measures of a replacement: what stands at the chosen positions, against the declared shares.

What arrives: batches that ask for tokens where they stood. What leaves: findings about what is shown there.
What never happens here: asking the replacement what it drew. It is read from the inputs and the answers, so a random
draw that hits the truth looks like a kept token; the expected shares allow for that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.audit.batch import Asked, Batch, asked, begins, drawn_spans, mark
from unmask.audit.finding import Above, Finding, Numbers, Unit, Within, chance, never, plural, ratio, wanted
from unmask.audit.measure import Said
from unmask.corrupt.replace import Per, Replace
from unmask.ragged import offsets, ranges, row_sums
from unmask.records import Bools, Ints, Layer
from unmask.tokenize.lexicon import UNKNOWN
from unmask.tokenize.stand_ins import StandIns
from unmask.tokenize.vocab import Vocab

COVERED = 0.5
"""The least share of the chosen words that should have a similar one: below it the rule is mostly a random one."""


@dataclass(frozen=True, slots=True)
class TokenShares:
    """Masked, random and kept tokens of a rule that exchanges tokens. One draw decides for a token, word or span."""

    mask: float
    random: float
    keep: float
    per: Per = Per.TOKEN

    def count(self, batch: Batch) -> Numbers:
        """Tokens, masks, kept, the chance hits of random draws, and the squared sizes of what shared a draw."""
        found = asked(batch)
        size = np.diff(_groups(batch, self.per), append=len(found.answers)).astype(np.float64)
        masked = found.shown == batch.vocab.mask
        kept = ~masked & (found.shown == found.answers)
        hits = mark(batch.vocab.size, batch.vocab.ordinary)[found.answers].sum() / len(batch.vocab.ordinary)
        return np.array([len(masked), masked.sum(), kept.sum(), hits, (size**2).sum()], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """Within what chance allows for the number of draws."""
        tokens, masked, kept, hits, squares = total
        draws = ratio(tokens**2, squares)
        lucky = self.random * ratio(hits, tokens)
        for name, number, expected in (
            ("mask", masked, self.mask),
            ("random", tokens - masked - kept, self.random - lucky),
            ("kept", kept, self.keep + lucky),
        ):
            yield _share(f"shown: {name}", number, tokens, expected, draws)


@dataclass(frozen=True, slots=True)
class WordShares:
    """Similar, random, masked and kept words of a rule that exchanges whole words."""

    replace: Replace

    def count(self, batch: Batch) -> Numbers:
        """Measured and expected numbers of masked, similar and kept words; words covered; squared draw sizes; words."""
        found, words = asked(batch), _groups(batch, Per.WORD)
        table = batch.vocab.stand_ins
        masked, kept = _all(found.shown == batch.vocab.mask, words), _all(found.shown == found.answers, words)
        similar = _is_neighbour(found, words, table) & ~masked & ~kept
        covered = table.covered(found.answers, words)
        truth, near = _random_odds(found, words, batch.vocab)
        spread = self.replace.random + self.replace.similar * ~covered
        expected = (
            self.replace.mask,
            self.replace.similar * covered + spread * near,
            self.replace.keep + spread * truth,
        )
        draws = np.searchsorted(words, _groups(batch, self.replace.per))
        size = np.diff(draws, append=len(words)).astype(np.float64)
        possible = [np.broadcast_to(share, len(words)).sum() for share in expected]
        measured = (masked.sum(), similar.sum(), kept.sum())
        return np.array([*measured, *possible, covered.sum(), (size**2).sum(), len(words)], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """Within what chance allows, given how many of the chosen words have a similar one."""
        measured, possible, (covered, squares, words) = total[:3], total[3:6], total[6:]
        draws = ratio(words**2, squares)
        names = (
            "shown: mask words",
            wanted("shown: similar words", self.replace.similar),
            "shown: kept words",
            wanted("shown: random words", self.replace.random),
        )
        numbers = [*measured, words - measured.sum()]
        shares = [*(ratio(number, words) for number in possible), 1 - ratio(possible.sum(), words)]
        for name, number, expected in zip(names, numbers, shares, strict=True):
            yield _share(name, number, words, expected, draws)
        yield _coverage(covered, words)


@dataclass(frozen=True, slots=True)
class OneWay:
    """Words or spans that are shown as a mask in part, although one draw decides for the whole."""

    per: Per

    def count(self, batch: Batch) -> Numbers:
        """How many."""
        groups, masked = _groups(batch, self.per), asked(batch).shown == batch.vocab.mask
        number = np.add.reduceat(masked, groups, dtype=np.int64)
        size = np.diff(groups, append=len(masked))
        return np.array([((number > 0) & (number < size)).sum()], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """None may be."""
        yield never(f"{plural(self.per)} shown as a mask in part", total[0])


@dataclass(frozen=True, slots=True)
class Ordinary:
    """Random or similar tokens that are not plain text: a special token would give the question away."""

    def count(self, batch: Batch) -> Numbers:
        """How many."""
        found, plain = asked(batch), mark(batch.vocab.size, batch.vocab.ordinary)
        changed = (found.shown != batch.vocab.mask) & (found.shown != found.answers)
        return np.array([(changed & ~plain[found.shown]).sum()], dtype=np.float64)

    def judge(self, total: Numbers) -> Said:
        """None may be."""
        yield never("random tokens that are special", total[0])


def _share(name: str, number: float, total: float, expected: float, draws: float) -> Finding:
    """A share of zero has no slack: what is never drawn must never be seen."""
    slack = chance(expected, draws) if expected > 0 else 0.0
    return Finding(name, ratio(number, total), Within(expected, slack), Unit.SHARE)


def _coverage(covered: float, words: float) -> Finding:
    """How far the table of similar words reaches into this text."""
    advice = (
        "Fewer than half of the chosen words have a similar one; the others are shown as random words. Run unmask "
        "vectors on more text, or give it --synonyms FILE."
        if covered
        else "Make a table of similar words with: unmask vectors --data FOLDER"
    )
    name = "chosen words that have a similar word"
    return Finding(name, ratio(covered, words), Above(COVERED), Unit.SHARE, advice)


def _groups(batch: Batch, per: Per) -> Ints:
    """The number of the first asked token of every token, word or span that draws once."""
    found = asked(batch)
    if per is Per.TOKEN:
        return np.arange(len(found.answers))
    spans = drawn_spans(batch)
    heads = mark(len(found.answers), np.cumsum(spans.lengths) - spans.lengths)
    if per is Per.WORD:
        heads |= begins(batch.example, Layer.WORD)[found.positions]
    return np.flatnonzero(heads)


def _all(flags: Bools, groups: Ints) -> Bools:
    return np.logical_and.reduceat(flags, groups)


def _is_neighbour(found: Asked, words: Ints, table: StandIns) -> Bools:
    """Which words are shown as one of the stand-ins that the table lists for them."""
    truth, shown = table.words.find(found.answers, words), table.words.find(found.shown, words)
    count = _listed(truth, table)
    known = np.flatnonzero(count)
    listed = table.neighbours[ranges(table.rows[truth[known]], count[known])] == np.repeat(shown[known], count[known])
    result = np.zeros(len(words), dtype=np.bool_)
    result[known] = row_sums(listed, offsets(count[known])) > 0
    return result


def _random_odds(found: Asked, words: Ints, vocab: Vocab) -> tuple[Numbers, Numbers]:
    """For each word, the chance that a random word is the word itself, or one of its stand-ins.

    A random word is another one of the table, with as many tokens; random tokens, where the table has none.
    """
    table, size = vocab.stand_ins, np.diff(words, append=len(found.answers))
    truth = table.words.find(found.answers, words)
    alike = np.bincount(table.words.lengths, minlength=int(size.max(initial=0)) + 1)[size] - (truth != UNKNOWN)
    near = _listed(truth, table) / np.maximum(alike, 1)
    return np.where(alike > 0, 0.0, float(len(vocab.ordinary)) ** -size), near


def _listed(number: Ints, table: StandIns) -> Ints:
    """How many stand-ins the table lists for each word."""
    count = np.zeros(len(number), dtype=np.int64)
    known = number != UNKNOWN
    count[known] = np.diff(table.rows)[number[known]]
    return count
