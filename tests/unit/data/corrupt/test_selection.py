"""Choosing inside a budget: the vectorised ways against readable loops, and the laws of lengths and shares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.core.errors import RecipeError
from unmask.core.records import Cloze, RowBatch, TokenUnits, UnitFlag, UnitKind
from unmask.core.rng import DrawPurpose, Key
from unmask.data.corrupt.masking import (
    MaskTokens,
    OneOfSelectors,
    RandomTokens,
    Replace,
    ReplaceBy,
    WholeUnits,
    geometric,
    inverse,
    mask_budgets,
)
from unmask.data.tokenize.vocab import Vocab

VOCAB = Vocab(1000, 1, 2, 3, 0, 4, np.arange(10, 1000, dtype=np.int32), np.zeros(0, np.int32))
NGRAMS = WholeUnits(run_lengths=(0.4, 0.3, 0.2, 0.1), inside=UnitKind.SENTENCE)
GEOMETRIC = WholeUnits(run_lengths=geometric(0.2, 10))
SELECTIONS = [
    RandomTokens(),
    WholeUnits(),
    WholeUnits(UnitKind.PHRASE),
    WholeUnits(UnitKind.ENTITY),
    NGRAMS,
    GEOMETRIC,
    WholeUnits(run_lengths=inverse(3)),
]


def rows_of(lengths, seed=0, word=0.6, sentence=0.05, phrase=0.1):
    """Rows `[CLS] text [SEP]` with random words, sentences and phrases."""
    rng = np.random.default_rng(seed)
    bits = []
    for length in lengths:
        row = (rng.random(length) < word) * UnitFlag.WORD | (rng.random(length) < sentence) * UnitFlag.BORDER
        heads = np.flatnonzero(row & UnitFlag.WORD)
        for i in np.flatnonzero(rng.random(max(len(heads) - 3, 0)) < phrase):
            row[heads[i] : heads[i + 2]] |= UnitFlag.IN_PHRASE | UnitFlag.IN_ENTITY
            row[heads[i]] |= UnitFlag.PHRASE | UnitFlag.ENTITY
        row[[0, length - 1]] = UnitFlag.BORDER
        row[min(1, length - 1)] |= UnitFlag.BORDER
        bits.append(row.astype(np.uint8))
    rows = np.append(0, np.cumsum(lengths))
    fixed = np.zeros(rows[-1], bool)
    fixed[rows[:-1]] = fixed[rows[1:] - 1] = True
    ids = rng.integers(10, 1000, rows[-1]).astype(np.int32)
    empty = np.zeros(rows[-1])
    return RowBatch(ids, empty.astype(np.uint8), empty.astype(np.int32), fixed, TokenUnits(np.concatenate(bits)), rows)


def one_row(example, row):
    a, b = example.rows[row], example.rows[row + 1]
    cut = slice(a, b)
    return RowBatch(
        example.ids[cut],
        example.segment[cut],
        example.document[cut],
        example.protected[cut],
        TokenUnits(example.units.bits[cut]),
        np.array([0, b - a]),
    )


def keys_for(example, seed=0):
    return Key.of(seed, "test").fold_in(np.arange(len(example)))


def units_of_row(example, row, own, inside):
    bits, start = example.units.bits, example.rows[row]
    for i in range(start + 1, example.rows[row + 1] + 1):
        if i == example.rows[row + 1] or bits[i] & own or (bits[i] & UnitFlag.WORD and not bits[i] & inside):
            if not example.protected[start]:
                yield start, i
            start = i


def loop_fit(example, layer, rate, key):
    """What `Units` promises, as a loop: shuffled units, the wanted layer first, skip what does not fit."""
    chosen = []
    inside = {UnitKind.WORD: 0, UnitKind.PHRASE: UnitFlag.IN_PHRASE, UnitKind.ENTITY: UnitFlag.IN_ENTITY}[layer]
    own = {UnitKind.WORD: UnitFlag.WORD, UnitKind.PHRASE: UnitFlag.PHRASE, UnitKind.ENTITY: UnitFlag.ENTITY}[layer]
    for row in range(len(example)):
        units = list(units_of_row(example, row, own, inside))
        words = Key(key.state[row : row + 1]).bits(DrawPurpose.SELECT, max(len(units), 1))[0]
        rank = {u: (not example.units.bits[u[0]] & own, int(words[n]) >> 45, n) for n, u in enumerate(units)}
        left, taken = max(1, round(rate * example.lengths[row])), []
        for start, end in sorted(units, key=rank.get):
            if end - start <= left:
                taken.append((start, end))
                left -= end - start
        if not taken and units:
            taken.append(min(sorted(units, key=rank.get), key=lambda unit: unit[1] - unit[0]))
        chosen += sorted(taken)
    return chosen


lengths_of_rows = st.lists(st.integers(3, 80), min_size=1, max_size=6)


@given(lengths_of_rows, st.integers(0, 10_000), st.sampled_from([UnitKind.WORD, UnitKind.PHRASE, UnitKind.ENTITY]))
@settings(max_examples=150, deadline=None)
def test_whole_units_equal_the_readable_loop(lengths, seed, layer):
    example = rows_of(lengths, seed)
    key = keys_for(example, seed)
    spans = WholeUnits(layer)(example, key)
    assert list(zip(spans.start, spans.end, strict=True)) == loop_fit(example, layer, 0.15, key)


@given(lengths_of_rows, st.integers(0, 10_000), st.sampled_from(SELECTIONS))
@settings(max_examples=300, deadline=None)
def test_every_selection_keeps_to_borders_and_leaves_no_row_empty(lengths, seed, select):
    example = rows_of(lengths, seed)
    spans = select(example, keys_for(example, seed))
    hit = np.zeros(len(example.ids), bool)
    for start, end in zip(spans.start, spans.end, strict=True):
        hit[start:end] = True
    assert not (hit & example.protected).any()
    assert all(hit[a:b].any() for a, b in zip(example.rows[:-1], example.rows[1:], strict=True))
    if not isinstance(select, RandomTokens):
        words = example.units.spans(UnitKind.WORD)
        assert all(len(set(hit[a:b].tolist())) == 1 for a, b in zip(words.start, words.end, strict=True))


@given(lengths_of_rows, st.integers(0, 1000), st.sampled_from(SELECTIONS))
@settings(max_examples=150, deadline=None)
def test_a_row_is_the_same_alone_and_in_any_batch(lengths, seed, select):
    example = rows_of(lengths, seed)
    key = keys_for(example, seed)
    rule = MaskTokens(select, Replace(mask=0.8, random=0.1, keep=0.1))
    together = rule(example, VOCAB, key).inputs.ids
    for row in range(len(example)):
        alone = rule(one_row(example, row), VOCAB, Key(key.state[row : row + 1])).inputs.ids
        assert (alone == together[example.rows[row] : example.rows[row + 1]]).all()


def test_a_row_longer_than_twelve_bits_does_not_change_its_neighbour():
    example = rows_of([200, 5000])
    key = keys_for(example)
    for select in (RandomTokens(), WholeUnits()):
        spans = select(example, key)
        alone = select(one_row(example, 0), Key(key.state[:1]))
        assert (spans.start[spans.start < 200] == alone.start).all()


def test_tokens_choose_exactly_the_budget():
    example = rows_of([512, 128, 33, 4])
    spans = RandomTokens()(example, keys_for(example))
    per_row = np.diff(np.searchsorted(spans.start, example.rows))
    assert per_row.tolist() == [77, 19, 5, 1] == mask_budgets(example.lengths, 0.15).tolist()
    capped = RandomTokens(max_predictions=20)(example, keys_for(example))
    assert np.diff(np.searchsorted(capped.start, example.rows)).tolist() == [20, 19, 5, 1]


def test_every_token_is_equally_likely():
    example = rows_of([66] * 4000, word=1.0)
    spans = RandomTokens()(example, keys_for(example))
    counts = np.bincount(spans.start % 66, minlength=66)
    assert counts[[0, 65]].sum() == 0
    expected = len(spans.start) / 64
    assert abs(counts[1:65] - expected).max() < 5 * np.sqrt(expected)


def run_lengths(select, rows=600, length=512):
    example = rows_of([length] * rows, seed=1)
    spans = select(example, keys_for(example))
    heads = np.append(0, np.cumsum((example.units.bits & UnitFlag.WORD) != 0))
    return heads[spans.end] - heads[spans.start], spans, example


def test_geometric_spans_have_a_mean_of_3_8_words():
    lengths, spans, example = run_lengths(GEOMETRIC, rows=2000)
    assert abs(lengths.mean() - 3.797) < 0.05
    assert lengths.max() == 10
    assert abs(spans.lengths.sum() / len(example.ids) - 0.15) < 0.005


@pytest.mark.parametrize("law", [(0.4, 0.3, 0.2, 0.1), inverse(3)])
def test_runs_follow_their_law_within_a_point(law):
    lengths, spans, example = run_lengths(WholeUnits(run_lengths=law, inside=UnitKind.SENTENCE))
    shares = np.bincount(lengths, minlength=len(law) + 1)[1:] / len(lengths)
    assert abs(shares - np.array(law)).max() < 0.01
    assert abs(spans.lengths.sum() / len(example.ids) - 0.15) < 0.005


def test_runs_neither_touch_nor_leave_their_sentence():
    _, spans, example = run_lengths(NGRAMS)
    assert (spans.start[1:] > spans.end[:-1]).all()
    sentence = np.cumsum((example.units.bits & UnitFlag.SENTENCE) != 0)
    assert (sentence[spans.start] == sentence[spans.end - 1]).all()


def test_runs_exceed_the_budget_by_less_than_one_run():
    _, spans, example = run_lengths(GEOMETRIC)
    row = np.searchsorted(example.rows, spans.start, side="right") - 1
    total = np.bincount(row, spans.lengths)
    longest = np.zeros(len(example))
    np.maximum.at(longest, row, spans.lengths)
    assert (total <= 0.15 * example.lengths + longest).all()


def test_one_of_draws_levels_by_share():
    example = rows_of([128] * 2000, seed=2)
    select = OneOfSelectors((RandomTokens(), WholeUnits(UnitKind.PHRASE)), (0.3, 0.7))
    assert select.required_units == {UnitKind.WORD, UnitKind.PHRASE}
    spans = select(example, keys_for(example))
    single = RandomTokens()(example, keys_for(example))
    row = np.searchsorted(example.rows, spans.start, side="right") - 1
    same = sum(
        np.array_equal(spans.start[row == r], single.start[(single.start >= a) & (single.start < b)])
        for r, (a, b) in enumerate(zip(example.rows[:-1], example.rows[1:], strict=True))
    )
    assert abs(same / 2000 - 0.3) < 0.04


def test_shares_of_what_is_shown():
    example = rows_of([512] * 400)
    cloze = MaskTokens()(example, VOCAB, keys_for(example))
    target = cloze.targets[0]
    assert isinstance(target, Cloze)
    shown = cloze.inputs.ids[target.positions]
    number = len(shown)
    masked, kept = (shown == VOCAB.mask).mean(), (shown == target.answers).mean()
    assert abs(masked - 0.8) < 4 * np.sqrt(0.16 / number)
    assert abs(kept - 0.1 - 0.1 / len(VOCAB.ordinary)) < 4 * np.sqrt(0.09 / number)
    random = shown[(shown != VOCAB.mask) & (shown != target.answers)]
    assert random.min() >= 10


def test_a_span_draws_once_for_all_its_tokens():
    example = rows_of([512] * 50)
    rule = MaskTokens(GEOMETRIC, Replace(mask=0.8, random=0.1, keep=0.1, per=ReplaceBy.SPAN))
    instance = rule(example, VOCAB, keys_for(example))
    cloze = instance.targets[0]
    masked = instance.inputs.ids == VOCAB.mask
    assert all(len(set(masked[a:b].tolist())) == 1 for a, b in zip(cloze.spans.start, cloze.spans.end, strict=True))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Replace(mask=0.8, random=0.1, keep=0.2), "sum to 1"),
        (lambda: Replace(similar=0.8, random=0.2), "whole words"),
        (lambda: RandomTokens(rate=1.5), "between 0 and 1"),
        (lambda: RandomTokens(max_predictions=0), "at least 1 token"),
        (lambda: WholeUnits(UnitKind.ENTITY, run_lengths=(0.5, 0.5)), "for words only"),
        (lambda: WholeUnits(UnitKind.SENTENCE), "words, phrases or entities"),
        (lambda: WholeUnits(run_lengths=(0.5, 0.4)), "sum to 1"),
        (lambda: OneOfSelectors((RandomTokens(),), (0.5,)), "summing to 1"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(make, says):
    with pytest.raises(RecipeError, match=says):
        make()
