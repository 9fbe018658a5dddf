"""Planning and building rows: what is in them, where it came from, and that any row can be built alone."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_corpus import TEXT, VOCAB, make_corpus

from unmask.core.errors import RecipeError
from unmask.core.records import UnitFlag
from unmask.core.rng import Key
from unmask.data.input_formats.contiguous import ContiguousStreams
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.pair_sampler import count_heads, randint, split_excess
from unmask.data.input_formats.pairs import Negative, SegmentGrain, SegmentPairs
from unmask.data.input_formats.row_plan import (
    BOS_EOS,
    CLS_SEP,
    EOS_ONLY,
    NO_SPECIAL_TOKENS,
    DynamicMasking,
    EpochSampler,
    StaticMasking,
    build_rows,
)
from unmask.data.input_formats.single_sentences import SingleSentences

KEY = Key.of(3, "plan")
BUILDERS = [
    Packed(DocumentBoundary.ACROSS),
    Packed(DocumentBoundary.NEVER),
    Packed(DocumentBoundary.BORDERS),
    SegmentPairs(Negative.RANDOM),
    SegmentPairs(Negative.SWAPPED),
    SegmentPairs(Negative.BOTH),
    SegmentPairs(Negative.RANDOM, SegmentGrain.SENTENCE),
    SingleSentences(),
    ContiguousStreams(2),
]
documents = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=12), min_size=3, max_size=12)


def built(builder, corpus, length, rows=None):
    plan = builder.plan(corpus, length, KEY)
    rows = np.arange(len(plan)) if rows is None else rows
    return plan, build_rows(corpus, plan, rows, builder.template, corpus.vocab)


def text_of(example, row):
    cut = slice(example.rows[row], example.rows[row + 1])
    return (example.ids[cut][~example.protected[cut]] - TEXT).tolist()


def document_of(corpus, address):
    starts = np.concatenate([shard.documents[:-1] + shard.base for shard in corpus.shards])
    return np.searchsorted(starts, address, side="right") - 1


@given(documents, st.sampled_from(BUILDERS), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_rows_fit_hold_text_and_can_be_built_alone(docs, builder, shards):
    corpus = make_corpus(docs, shards)
    if isinstance(builder, ContiguousStreams) and corpus.manifest.counts.tokens < 60:
        return
    plan, example = built(builder, corpus, 30)
    assert (example.lengths <= 30).all()
    assert all(text_of(example, row) for row in range(len(example)))
    assert (example.ids[example.protected] < TEXT).all()
    for row in {0, len(plan) // 2, len(plan) - 1}:
        _, alone = built(builder, corpus, 30, np.array([row]))
        cut = slice(example.rows[row], example.rows[row + 1])
        for name in ("ids", "segment", "document", "protected"):
            assert (getattr(alone, name) == getattr(example, name)[cut]).all()
        assert (alone.units.bits == example.units.bits[cut]).all()


@given(documents, st.sampled_from([Packed(join) for join in DocumentBoundary] + [SingleSentences()]), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_running_text_is_used_once_and_in_order(docs, builder, shards):
    corpus = make_corpus(docs, shards)
    _, example = built(builder, corpus, 30)
    assert (example.ids[~example.protected] - TEXT).tolist() == list(range(corpus.manifest.counts.tokens))


@given(documents)
@settings(max_examples=100, deadline=None)
def test_doc_sentences_never_cross_and_full_sentences_separate(docs):
    corpus = make_corpus(docs)
    _, example = built(Packed(DocumentBoundary.NEVER), corpus, 30)
    assert all(len({document_of(corpus, a) for a in text_of(example, row)}) == 1 for row in range(len(example)))
    _, example = built(Packed(DocumentBoundary.ACROSS), corpus, 30)
    for row in range(len(example)):
        ids = example.ids[example.rows[row] : example.rows[row + 1]]
        homes = [document_of(corpus, i - TEXT) if i >= TEXT else -1 for i in ids]
        assert all(a == b or -1 in (a, b) for a, b in itertools.pairwise(homes))


@given(documents)
@settings(max_examples=100, deadline=None)
def test_borders_number_the_documents_of_a_row_and_open_each_with_cls(docs):
    corpus = make_corpus(docs)
    _, example = built(Packed(DocumentBoundary.BORDERS), corpus, 30)
    for row in range(len(example)):
        cut = slice(example.rows[row], example.rows[row + 1])
        ids, part = example.ids[cut], example.document[cut]
        opens = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
        assert (ids[opens] == VOCAB.cls).all()
        assert (ids == VOCAB.cls).sum() == len(opens)
        for number in range(part.max() + 1):
            assert len({document_of(corpus, a - TEXT) for a in ids[part == number] if a >= TEXT}) == 1


def test_packed_rows_are_full():
    corpus = make_corpus([[20, 30, 11]] * 200, word=1)
    _, example = built(Packed(DocumentBoundary.BORDERS), corpus, 128)
    assert example.lengths[:-1].mean() > 127.5 - 8


@pytest.mark.parametrize("length", [8, 9, 12])
def test_even_the_shortest_rows_hold_everything(length):
    corpus = make_corpus([[20, 3], [1], [7]], word=1)
    _, example = built(Packed(DocumentBoundary.BORDERS), corpus, length)
    assert (example.ids[~example.protected] - TEXT).tolist() == list(range(31))


def test_impossible_numbers_are_refused():
    with pytest.raises(RecipeError, match="between 0 and 1"):
        SegmentPairs(short_fraction=5)
    with pytest.raises(RecipeError, match="at least 1 stream"):
        ContiguousStreams(0)


def test_a_long_sentence_is_cut_between_words():
    corpus = make_corpus([[400], [50]], word=3)
    _, example = built(Packed(DocumentBoundary.NEVER), corpus, 64)
    first = [text_of(example, row)[0] for row in range(len(example))]
    units = corpus.shards[0].units
    assert all(units[a] & UnitFlag.WORD for a in first)


@pytest.mark.parametrize(("negative", "kinds"), [(Negative.RANDOM, 2), (Negative.SWAPPED, 2), (Negative.BOTH, 3)])
def test_pairs_tell_the_truth_about_themselves(negative, kinds):
    corpus = make_corpus([[7, 9, 6, 8, 10, 5, 12, 9] * 20] * 40, shards=3)
    builder = SegmentPairs(negative)
    _, example = built(builder, corpus, 64)
    (fact,) = example.facts.values()
    for row in range(len(example)):
        cut = slice(example.rows[row], example.rows[row + 1])
        segment, free = example.segment[cut], ~example.protected[cut]
        a, b = (example.ids[cut][free & (segment == side)] - TEXT for side in (0, 1))
        same = document_of(corpus, a[0]) == document_of(corpus, b[0])
        kind = 0 if same and b[0] > a[-1] else 1 if same else 2
        assert kind == (2 * fact[row] if negative is Negative.RANDOM else fact[row])
        ids = example.ids[cut]
        assert ids[0] == VOCAB.cls
        assert ids[-1] == VOCAB.sep
        assert (ids == VOCAB.sep).sum() == 2
    shares = np.bincount(fact, minlength=kinds) / len(fact)
    assert abs(shares - 1 / kinds).max() < 0.06


def test_adjacent_pairs_leave_no_gap_unless_cut_to_length():
    corpus = make_corpus([[4, 5, 6, 3]] * 100)
    _, example = built(SegmentPairs(Negative.SWAPPED, short_fraction=0.0), corpus, 64)
    for row in range(len(example)):
        text = text_of(example, row)
        assert sorted(text) == list(range(min(text), max(text) + 1))


def test_a_lone_sentence_is_cut_between_words():
    corpus = make_corpus([[9], [4], [1]], word=3)
    plan, _ = built(SegmentPairs(Negative.SWAPPED, short_fraction=0.0), corpus, 64)
    assert sorted(plan.start.tolist()) == [0, 3, 9, 12] or sorted(plan.start.tolist()) == [0, 6, 9, 12]


def test_one_row_in_ten_is_short():
    corpus = make_corpus([[8] * 60] * 60)
    _, usual = built(SegmentPairs(short_fraction=0.0), corpus, 128)
    _, mixed = built(SegmentPairs(short_fraction=0.5), corpus, 128)
    assert np.median(usual.lengths) > 120
    assert 0.3 < (mixed.lengths < 110).mean() < 0.6


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 600))
def test_the_longer_side_loses_one_token_at_a_time(a, b, room):
    excess = max(0, a + b - max(room, 2))
    left_a, left_b = a, b
    for _ in range(excess):
        if left_a > left_b:
            left_a -= 1
        else:
            left_b -= 1
    cut_a, cut_b = split_excess(np.array([a]), np.array([b]), np.array([excess]))
    assert (cut_a.item(), cut_b.item()) == (a - left_a, b - left_b)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4), st.integers(0, 300))
def test_coins_are_the_first_bits_of_random_words(words, coins):
    bits = "".join(f"{word:064b}"[::-1] for word in words)
    shown = count_heads(np.array([words], dtype=np.uint64), np.array([coins]))
    assert shown.item() == bits[:coins].count("1") + max(coins - 256, 0) // 2


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**31))
def test_a_part_of_a_word_is_its_product_without_the_last_bits(word, bound):
    assert randint(np.array([word], dtype=np.uint64), bound).item() == word * bound // 2**64


def test_one_document_cannot_have_a_random_partner():
    with pytest.raises(RecipeError, match="two documents"):
        SegmentPairs().plan(make_corpus([[5, 5]]), 32, KEY)


def test_lanes_go_on_where_they_stopped():
    corpus = make_corpus([[10, 10, 10]] * 10, shards=3)
    plan, example = built(ContiguousStreams(4), corpus, 16)
    assert len(plan) == 4 * (300 // 4 // 16)
    assert plan.continues_previous.tolist() == [False] * 4 + [True] * (len(plan) - 4)
    for row in range(4, len(plan)):
        assert text_of(example, row)[0] == text_of(example, row - 4)[-1] + 1
        assert len(text_of(example, row)) == 16
    with pytest.raises(RecipeError, match="fewer streams"):
        ContiguousStreams(100).check(corpus, 16)
    assert len(ContiguousStreams(100).plan(corpus, 16, KEY)) == corpus.manifest.counts.tokens // 16


def test_single_sentences_know_their_neighbours():
    corpus = make_corpus([[3, 4], [5], [6, 7, 8]])
    _, example = built(SingleSentences(), corpus, 32)
    assert example.lengths.tolist() == [5, 6, 7, 8, 9, 10]
    assert example.facts["follows"].tolist() == [0, 1, 0, 0, 1, 1]
    assert example.facts["leads"].tolist() == [1, 0, 0, 1, 1, 0]


def test_every_pass_reads_every_row_once_in_another_order():
    visits = EpochSampler(1000, DynamicMasking(), Key.of(1))
    first, _ = visits(np.arange(1000))
    second, _ = visits(np.arange(1000, 2000))
    assert sorted(first) == sorted(second) == list(range(1000))
    assert (first != second).mean() > 0.9
    alone, key = visits(np.array([1234]))
    assert alone[0] == second[234]
    assert key.state[0] == visits(np.arange(1000, 2000))[1].state[234]


def test_ten_copies_are_ten_draws_and_every_visit_is_always_new():
    row, visit = np.zeros(40, np.int64), np.arange(40)
    assert len(set(EpochSampler(5, StaticMasking(10), Key.of(1)).key_of(row, visit).state.tolist())) == 10
    assert len(set(EpochSampler(5, DynamicMasking(), Key.of(1)).key_of(row, visit).state.tolist())) == 40


@pytest.mark.parametrize(
    ("template", "first", "last"),
    [(CLS_SEP, "cls", "sep"), (BOS_EOS, "bos", "eos"), (EOS_ONLY, "", "eos"), (NO_SPECIAL_TOKENS, "", "")],
)
def test_a_template_says_which_special_tokens_begin_and_end_a_row(template, first, last):
    vocab = replace(VOCAB, own_bos=5, own_eos=6)
    corpus = replace(make_corpus([[4, 4], [9, 9], [30]]), vocab=vocab)
    example = built(Packed(DocumentBoundary.NEVER, template), corpus, 20)[1]
    starts, ends = example.ids[example.rows[:-1]], example.ids[example.rows[1:] - 1]
    assert (starts == getattr(vocab, first)).all() if first else (starts >= TEXT).all()
    assert (ends == getattr(vocab, last)).all() if last else (ends >= TEXT).all()
    assert (example.lengths <= 20).all()
    assert example.protected.sum() == len(example) * (bool(first) + bool(last))


def test_a_vocabulary_without_bos_and_eos_takes_cls_and_sep():
    assert (VOCAB.bos, VOCAB.eos) == (VOCAB.cls, VOCAB.sep)
