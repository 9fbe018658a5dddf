"""Cutting a corpus between two documents."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.core.errors import CorpusError
from unmask.core.rng import Key
from unmask.data.corpus.holdout import split_heldout
from unmask.data.input_formats.contiguous import ContiguousStreams
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.data.input_formats.row_plan import build_rows

sys.path.append(str(Path(__file__).parent.parent / "examples"))
from small_corpus import TEXT, VOCAB, make_corpus

documents = st.lists(st.lists(st.integers(1, 20), min_size=1, max_size=4), min_size=4, max_size=10)


def text(corpus, builder):
    plan = builder.plan(corpus, 24, Key.of(0))
    example = build_rows(corpus, plan, np.arange(len(plan)), builder.template, VOCAB)
    return (example.ids[~example.protected] - TEXT).tolist()


@given(documents, st.integers(1, 3), st.floats(0.01, 0.99))
@settings(max_examples=100, deadline=None)
def test_every_document_is_in_exactly_one_part(docs, shards, share):
    corpus = make_corpus(docs, min(shards, len(docs)))
    learn, judge = split_heldout(corpus, share)
    first, second = text(learn, Packed(DocumentBoundary.NEVER)), text(judge, Packed(DocumentBoundary.NEVER))
    assert sorted(first + second) == list(range(corpus.manifest.counts.tokens))
    assert first == sorted(first)
    assert second == sorted(second)
    assert min(learn.manifest.counts.documents, judge.manifest.counts.documents) >= 2
    assert learn.manifest.counts.documents + judge.manifest.counts.documents == len(docs)
    starts = {0, *np.cumsum([sum(doc) for doc in docs])}
    assert {token for token in second if token - 1 not in set(second)} <= starts


def test_about_the_share_that_was_asked_for():
    learn, judge = split_heldout(make_corpus([[10]] * 100, 4), 0.05)
    assert judge.manifest.counts.tokens == 50
    assert learn.manifest.counts.tokens == 950


def test_every_shard_gives_its_last_documents():
    _, judge = split_heldout(make_corpus([[10]] * 100, 4), 0.08)
    assert text(judge, Packed(DocumentBoundary.NEVER)) == [
        token for end in (250, 500, 750, 1000) for token in range(end - 20, end)
    ]


def test_a_shard_of_one_long_document_is_made_up_for_by_others():
    _, judge = split_heldout(make_corpus([[20] * 20, *([[20]] * 80)], 2), 0.1)
    assert abs(judge.manifest.counts.tokens - 200) <= 20


def test_lanes_of_a_part_stay_inside_it():
    learn, judge = split_heldout(make_corpus([[10]] * 100, 3), 0.5)
    known = set(text(judge, Packed(DocumentBoundary.NEVER)))
    assert set(text(judge, ContiguousStreams(2))) <= known
    assert not set(text(learn, ContiguousStreams(2))) & known


@pytest.mark.parametrize("count", [1, 3])
def test_too_few_documents_cannot_be_split(count):
    with pytest.raises(CorpusError, match=rf"has {count}\. Add documents"):
        split_heldout(make_corpus([[5, 5]] * count), 0.1)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_both_parts_can_pair_segments_of_two_documents(share):
    for part in split_heldout(make_corpus([[10, 10], [300], [5], [5], [2]]), share):
        assert len(SegmentPairs(Negative.RANDOM).plan(part, 24, Key.of(0)))
