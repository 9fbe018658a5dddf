"""Law 4, Shares: what a part declares (80/10/10, run lengths, rates) is what comes out, within binomial bounds.

Nothing here knows a member by name. Each corruption that declares numbers is held to its own, on a corpus of invented
tokens, at fixed keys: a test that passes once passes always.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from math import exp, factorial, sqrt

import numpy as np
import pytest
from law_corpus import word_numbers
from law_subjects import Subject, plan_of, subjects

from unmask.core.ragged import row_sums
from unmask.core.records import Bools, Cloze, DecoderTarget, InputsAndTargets, Ints, PermutedTarget, RowBatch, UnitFlag
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.corrupt.compose import NoiseSequence
from unmask.data.corrupt.factorization_order import PermutationOrder
from unmask.data.corrupt.masking import (
    MaskTokens,
    OneOfSelectors,
    RandomTokens,
    Replace,
    ReplaceBy,
    Selector,
    WholeUnits,
)
from unmask.data.corrupt.mass_fragment import MassFragment
from unmask.data.corrupt.protocol import Corruption
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.corrupt.text_infilling import TextInfilling
from unmask.data.corrupt.token_deletion import TokenDeletion
from unmask.data.tokenize.vocab import Vocab

LENGTH, VISITS, SEED = 512, 3000, 2
SIGMAS = 5.0
NEAR = 2 / 2999
"""How often a random word of the invented vocabulary is one of the two similar ones."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rows, what a corruption made of them, and the key it drew from."""

    part: Corruption
    example: RowBatch
    instance: InputsAndTargets
    vocab: Vocab
    key: Key

    @property
    def free(self) -> Ints:
        """How many tokens of each row may be touched."""
        return row_sums(~self.example.protected, self.example.rows)

    def survives(self) -> Bools:
        """Which tokens are still shown: the same draw on rows whose tokens are their own positions."""
        numbered = np.arange(len(self.example.ids), dtype=np.int32) + np.int32(self.vocab.size)
        twin = replace(self.example, ids=np.where(self.example.protected, self.example.ids, numbered))
        return np.isin(numbered, self.part(twin, self.vocab, self.key).inputs.ids)


def numbers_in(part: object) -> bool:
    """Whether a part declares a share, a rate or a law anywhere inside."""
    if isinstance(part, tuple):
        return any(map(numbers_in, part))
    if is_dataclass(part):
        return any(numbers_in(getattr(part, one.name)) for one in fields(part))
    return isinstance(part, float)


DECLARING = [subject for subject in subjects() if numbers_in(subject.task.corruption)]


@pytest.mark.parametrize("subject", DECLARING, ids=lambda subject: subject.name)
def test_what_a_part_declares_is_what_comes_out(subject: Subject, corpus: Corpus) -> None:
    plan = plan_of(subject.task.examples, corpus, LENGTH, SEED)
    example, key = subject.rows(corpus, plan, np.arange(VISITS), SEED)
    part = subject.task.corruption
    hold(part, Drawn(part, example, part(example, corpus.vocab, key), corpus.vocab, key))


def hold(part: Corruption, drawn: Drawn) -> None:
    """Hold a part to its own numbers. A kind of part that is not known here must say what it promises."""
    match part:
        case MaskTokens(select, show):
            hold_rate(select, drawn)
            hold_runs(select, drawn)
            hold_shown(show, drawn)
        case SpanCorruption():
            hold_sentinels(part, drawn)
        case TextInfilling():
            hold_infill(part, drawn)
        case TokenDeletion():
            hold_delete(part, drawn)
        case MassFragment():
            hold_fragment(part, drawn)
        case PermutationOrder():
            hold_order(part, drawn)
        case NoiseSequence(steps) if sum(map(numbers_in, steps)) == 1:
            hold(next(step for step in steps if numbers_in(step)), drawn)  # moving a text changes no number
        case _:
            pytest.fail(f"{type(part).__name__} declares numbers; say in this file what they promise")


def agree(found: int, total: int, share: float, slack: float = 0.0) -> None:
    """A count is a binomial draw of a share, as far as five standard errors can tell."""
    assert total > 1000, "too few draws to say anything"
    assert abs(found / total - share) <= SIGMAS * sqrt(share * (1 - share) / total) + slack


def hold_rate(select: Selector, drawn: Drawn) -> None:
    """The declared share of all tokens is chosen, within half a point."""
    assert abs(len(cloze_of(drawn).positions) / len(drawn.example.ids) - select.rate) < 0.005


def hold_runs(select: Selector, drawn: Drawn) -> None:
    """How many words a selection takes follows the declared law: every share within a point, the mean within 0.05."""
    assert not isinstance(select, OneOfSelectors), "say here what the shares of a mixture promise"
    example, spans = drawn.example, cloze_of(drawn).spans
    if isinstance(select, RandomTokens):
        assert (spans.lengths == 1).all()
        return
    assert isinstance(select, WholeUnits)
    if len(select.run_lengths) == 1:
        return  # a phrase or an entity has as many words as it has
    before = np.append(0, np.cumsum((example.units.bits & UnitFlag.WORD) != 0))
    # A row whose budget cannot hold the longest run draws shorter ones.
    roomy = (select.rate * example.lengths > 3 * len(select.run_lengths))[row_of(example, spans.start)]
    counts = np.bincount((before[spans.end] - before[spans.start])[roomy], minlength=len(select.run_lengths) + 1)[1:]
    assert len(counts) == len(select.run_lengths)
    for count, share in zip(counts.tolist(), select.run_lengths, strict=True):
        agree(count, int(counts.sum()), share)
        assert abs(count / counts.sum() - share) < 0.01
    number = np.arange(1, len(counts) + 1)
    assert abs(counts @ number / counts.sum() - np.asarray(select.run_lengths) @ number) < 0.05


def hold_shown(show: Replace, drawn: Drawn) -> None:
    """Each token, word or span drew once among mask, random, keep and similar."""
    cloze, vocab = cloze_of(drawn), drawn.vocab
    shown = drawn.instance.inputs.ids[cloze.positions]
    heads = group_heads(show.per, drawn.example, cloze)
    masked, kept = (np.logical_and.reduceat(flags, heads) for flags in (shown == vocab.mask, shown == cloze.answers))
    whole, similar = np.ones_like(kept), np.zeros_like(kept)
    if show.similar:  # a word cut off at the edge of a row has no similar words
        word, other = word_numbers(cloze.answers, heads), word_numbers(shown, heads)
        whole, similar = word >= 0, np.isin(word ^ other, (1, 2)) & (word >= 0) & (other >= 0)
    noisy = ~(masked | kept | similar)
    luck = 1 / len(vocab.ordinary)
    for found, share, slack in (
        (masked, show.mask, 0.0),
        (kept, show.keep, luck),
        (similar, show.similar, NEAR),
        (noisy, show.random, luck + NEAR),
    ):
        agree(int(found[whole].sum()), int(whole.sum()), share, slack)
    assert np.isin(shown[np.repeat(noisy, np.diff(heads, append=len(shown)))], vocab.ordinary).all()


def group_heads(per: ReplaceBy, example: RowBatch, cloze: Cloze) -> Ints:
    """Where, in the list of chosen positions, each group that draws once begins."""
    opens = np.isin(cloze.positions, cloze.spans.start)
    if per is ReplaceBy.TOKEN:
        opens[:] = True
    if per is ReplaceBy.WORD:
        opens |= (example.units.bits[cloze.positions] & UnitFlag.WORD) != 0
    return np.flatnonzero(opens)


def hold_sentinels(part: SpanCorruption, drawn: Drawn) -> None:
    """The rounded rate of each row is removed, in a `mean`-th as many spans."""
    target, free = rewrite_of(drawn), drawn.free
    removed = free - row_sums(drawn.survives() & ~drawn.example.protected, drawn.example.rows)
    assert removed.tolist() == np.clip(np.rint(part.rate * free), 1, np.maximum(free - 1, 1)).tolist()
    spans = row_sums(np.isin(target.ids, drawn.vocab.sentinels), target.rows) - 1
    assert (np.abs(spans - removed / part.mean_span_length) < 1).all()
    assert abs(removed.sum() / spans.sum() - part.mean_span_length) < 0.05


def hold_infill(part: TextInfilling, drawn: Drawn) -> None:
    """The rate of the words is hidden, rounded up, behind as many masks as Poisson lengths need to cover it."""
    example = drawn.example
    words = ((example.units.bits & UnitFlag.WORD) != 0) & ~example.protected
    count = row_sums(words, example.rows)
    hidden = count - row_sums(words & drawn.survives(), example.rows)
    assert hidden.tolist() == np.ceil(part.rate * count - 1e-9).tolist()
    masks, expected = (
        int((drawn.instance.inputs.ids == drawn.vocab.mask).sum()),
        draws_to_cover(hidden, part.mean_span_length),
    )
    assert expected > 10_000
    assert abs(masks / expected - 1) < SIGMAS / sqrt(expected)


def draws_to_cover(budgets: Ints, mean: float) -> float:
    """How many Poisson lengths it takes on average to cover each budget: N(b) = 1 + the sum of p(n) N(b - n)."""
    most = int(budgets.max())
    law = [exp(-mean) * mean**n / factorial(n) for n in range(most + 1)]
    needed = np.zeros(most + 1)
    for budget in range(1, most + 1):
        needed[budget] = (1 + sum(law[n] * needed[budget - n] for n in range(1, budget))) / (1 - law[0])
    return float(needed[budgets].sum())


def hold_delete(part: TokenDeletion, drawn: Drawn) -> None:
    """The rounded rate of each row is gone; the last token stays."""
    gone = np.clip(np.maximum(np.rint(part.rate * drawn.free), 1), 0, drawn.free - 1)
    assert (drawn.example.lengths - np.diff(drawn.instance.inputs.rows)).tolist() == gone.tolist()


def hold_fragment(part: MassFragment, drawn: Drawn) -> None:
    """One piece of the declared share, at the declared places, shown as declared."""
    target, free, vocab = rewrite_of(drawn), drawn.free, drawn.vocab
    size = np.diff(target.rows)
    assert size.tolist() == np.maximum(np.rint(part.fraction * free), 1).tolist()
    shown = drawn.instance.inputs.ids[target.position + np.repeat(drawn.example.rows[:-1], size)]
    masked, kept = int((shown == vocab.mask).sum()), int((shown == target.ids).sum())
    agree(masked, len(shown), part.mask)
    agree(kept, len(shown), part.keep, 1 / len(vocab.ordinary))
    agree(len(shown) - masked - kept, len(shown), part.random, 1 / len(vocab.ordinary))
    some = free > size
    room, start = (free - size)[some], target.position[target.rows[:-1]][some] - 1
    front, back, anywhere = part.place_probabilities
    luck = anywhere * float((1 / (room + 1)).mean())
    agree((start == 0).sum(), len(room), front + luck)
    agree((start == room).sum(), len(room), back + luck)


def hold_order(part: PermutationOrder, drawn: Drawn) -> None:
    """The declared share of every row is asked for, and its ranks are a fair order of 0, 1, 2, ..."""
    target, example = drawn.instance.targets[0], drawn.example
    assert isinstance(target, PermutedTarget)
    asked = row_sums(target.rank >= 0, example.rows)
    assert asked.tolist() == np.clip(np.rint(part.target_fraction * drawn.free), 1, drawn.free).tolist()
    row, rank = row_of(example, target.positions), target.rank[target.positions]
    together = np.flatnonzero(row[1:] == row[:-1])
    agree((rank[together] < rank[together + 1]).sum(), len(together), 0.5)
    ordered = np.lexsort((rank, row))
    assert rank[ordered].tolist() == [place for count in asked.tolist() for place in range(count)]


def cloze_of(drawn: Drawn) -> Cloze:
    target = drawn.instance.targets[0]
    assert isinstance(target, Cloze)
    return target


def rewrite_of(drawn: Drawn) -> DecoderTarget:
    target = drawn.instance.targets[0]
    assert isinstance(target, DecoderTarget)
    return target


def row_of(example: RowBatch, positions: Ints) -> Ints:
    return np.searchsorted(example.rows, positions, side="right") - 1
