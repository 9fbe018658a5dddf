"""Cutting a corpus between two documents."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.errors import CorpusError
from unmask.examples.lanes import Lanes
from unmask.examples.packed import Join, Packed
from unmask.examples.pairs import Negative, Pairs
from unmask.examples.plan import build
from unmask.keys import Key
from unmask.shards.split import split

sys.path.append(str(Path(__file__).parent.parent / "examples"))
from small_corpus import TEXT, VOCAB, make_corpus

documents = st.lists(st.lists(st.integers(1, 20), min_size=1, max_size=4), min_size=4, max_size=10)


def text(corpus, builder):
    plan = builder.plan(corpus, 24, Key.of(0))
    example = build(corpus, plan, np.arange(len(plan)), builder.frame, VOCAB)
    return (example.ids[~example.fixed] - TEXT).tolist()


@given(documents, st.integers(1, 3), st.floats(0.01, 0.99))
@settings(max_examples=100, deadline=None)
def test_every_document_is_in_exactly_one_part(docs, shards, share):
    corpus = make_corpus(docs, min(shards, len(docs)))
    learn, judge = split(corpus, share)
    first, second = text(learn, Packed(Join.NEVER)), text(judge, Packed(Join.NEVER))
    assert first + second == list(range(corpus.manifest.counts.tokens))
    assert min(learn.manifest.counts.documents, judge.manifest.counts.documents) >= 2
    assert learn.manifest.counts.documents + judge.manifest.counts.documents == len(docs)
    assert second[0] in np.cumsum([sum(doc) for doc in docs])


def test_about_the_share_that_was_asked_for():
    learn, judge = split(make_corpus([[10]] * 100, 4), 0.05)
    assert judge.manifest.counts.tokens == 50
    assert learn.manifest.counts.tokens == 950


def test_lanes_of_a_part_stay_inside_it():
    _, judge = split(make_corpus([[10]] * 100, 3), 0.5)
    assert min(text(judge, Lanes(2))) >= 500


@pytest.mark.parametrize("count", [1, 3])
def test_too_few_documents_cannot_be_split(count):
    with pytest.raises(CorpusError, match=f"holds {count} document.* two to learn from and two to be judged by"):
        split(make_corpus([[5, 5]] * count), 0.1)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_both_parts_can_pair_segments_of_two_documents(share):
    for part in split(make_corpus([[10, 10], [300], [5], [5], [2]]), share):
        assert len(Pairs(Negative.RANDOM).plan(part, 24, Key.of(0)))
