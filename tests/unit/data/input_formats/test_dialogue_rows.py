"""Rows of conversations, held against a loop that follows the rule turn by turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_corpus import TEXT, VOCAB, make_corpus

from unmask.core.errors import RecipeError
from unmask.core.records import UnitFlag, UnitKind
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus, Shard
from unmask.data.corpus.holdout import split_heldout
from unmask.data.input_formats.dialogues import QUERY, REPLY, Dialogues
from unmask.data.input_formats.row_plan import build_rows

KEY = Key.of(3, "plan")
talks = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=9), min_size=4, max_size=12)


def conversations(documents, shards=1, texts=()):
    """A corpus whose documents are lists of turn lengths; roles follow no order. Those in `texts` are plain text."""
    corpus = make_corpus(documents, shards)
    number, made = 0, []
    for shard in corpus.shards:
        units = shard.units.copy()
        for start, end in zip(shard.documents[:-1], shard.documents[1:], strict=True):
            turns = start + np.flatnonzero(units[start:end] & UnitFlag.SENTENCE)
            if number not in texts:
                units[turns] |= UnitFlag.TURN
                units[turns[(turns * 7 + number) % 3 == 1]] |= UnitFlag.REPLY
            number += 1
        made.append(Shard(shard.ids, units, shard.documents, shard.base))
    manifest = replace(corpus.manifest, layers=tuple(UnitKind))
    return Corpus(Path("talks"), manifest, tuple(made), VOCAB)


def read(corpus):
    """Every conversation as a list of turns: (address, length, segment)."""
    found = []
    for shard in corpus.shards:
        for start, end in zip(shard.documents[:-1].tolist(), shard.documents[1:].tolist(), strict=True):
            borders = [at for at in range(start, end) if shard.units[at] & UnitFlag.TURN] + [end]
            speakers = [REPLY if shard.units[at] & UnitFlag.REPLY else QUERY for at in borders[:-1]]
            sizes = np.diff(borders).tolist()
            found.append([(a + shard.base, n, who) for a, n, who in zip(borders, sizes, speakers, strict=False)])
    return [turns for turns in found if len(turns) > 1]


def pieces(plan, row):
    cut = slice(plan.rows[row], plan.rows[row + 1])
    return list(zip(plan.start[cut].tolist(), plan.length[cut].tolist(), plan.segment[cut].tolist(), strict=True))


def held(corpus, plan, length):
    """Hold every row to the rule; returns the numbers of turns of all rows."""
    expected = read(corpus)
    own = {start: (number, place) for number, turns in enumerate(expected) for place, (start, _, _) in enumerate(turns)}
    at, place, counts = 0, 0, []
    for row in range(len(plan)):
        found = pieces(plan, row)
        turns = expected[at]
        first = min(place, len(turns) - len(found))
        assert first == place or first + len(found) == len(turns), "only the last row of a conversation reaches back"
        true = turns[first : first + len(found)]
        strangers = [one for one, (start, _, _) in zip(found, true, strict=True) if one[0] != start]
        assert len(strangers) == plan.facts["reply"][row]
        assert all(own[start][0] != at for start, _, _ in strangers)
        assert [who for _, _, who in found] == [who for _, _, who in true]
        whole = [expected[own[start][0]][own[start][1]][1] for start, _, _ in found]
        cut = [size for (_, size, _), full in zip(found, whole, strict=True) if size < full]
        assert len(set(cut)) <= 1
        assert not cut or max(size for _, size, _ in found) == cut[0] > 0
        room = length - 1 - len(found)
        assert sum(size for _, size, _ in found) <= room
        assert not cut or sum(size for _, size, _ in found) > room - len(found)
        if len(found) > 2:
            assert sum(size for _, size, _ in true) <= room, "more than two turns stand in a row only if they fit"
        counts.append(len(found))
        place = first + len(found)
        if place == len(turns):
            at, place = at + 1, 0
    assert at == len(expected), "every conversation is read to its end"
    return counts


@given(talks, st.integers(1, 3), st.sampled_from((8, 12, 30, 128)), st.sampled_from((0.0, 0.5, 1.0)))
@settings(max_examples=150, deadline=None)
def test_rows_follow_the_rule(documents, shards, length, fake):
    corpus = conversations([[5, 5], [4, 4], *documents], shards)
    how = Dialogues(fake_fraction=fake)
    plan = how.plan(corpus, length, KEY)
    counts = held(corpus, plan, length)
    assert set(counts) <= {2, 3, 4}
    example = build_rows(corpus, plan, np.arange(len(plan)), how.template, VOCAB)
    assert (example.lengths <= length).all()
    for row in (0, len(plan) - 1):
        cut = slice(example.rows[row], example.rows[row + 1])
        ids, segment = [VOCAB.cls], [pieces(plan, row)[0][2]]
        for start, size, who in pieces(plan, row):
            ids += [*range(start + TEXT, start + TEXT + size), VOCAB.sep]
            segment += [who] * (size + 1)
        assert example.ids[cut].tolist() == ids
        assert example.segment[cut].tolist() == segment


def test_half_of_the_rows_are_fake_and_every_number_of_turns_is_as_likely():
    corpus = conversations([[3] * 400 for _ in range(20)], shards=2)
    plan = Dialogues().plan(corpus, 128, KEY)
    counts = np.diff(plan.rows)
    assert abs(plan.facts["reply"].mean() - 0.5) < 0.03
    assert all(abs((counts == number).mean() - 1 / 3) < 0.03 for number in (2, 3, 4))


def test_any_turn_of_a_row_may_be_the_fake_one():
    corpus = conversations([[3] * 300 for _ in range(20)])
    plan = Dialogues(min_turns=3, max_turns=3, fake_fraction=1.0).plan(corpus, 64, KEY)
    homes = plan.start.reshape(-1, 3) // 900
    stranger = [np.flatnonzero([(row == one).sum() == 1 for one in row])[0] for row in homes]
    assert all(abs(np.mean(np.array(stranger) == place) - 1 / 3) < 0.04 for place in range(3))


def test_fakes_come_from_all_other_conversations():
    corpus = conversations([[3, 3] for _ in range(20)], shards=3)
    homes = set()
    for seed in range(200):
        plan = Dialogues(fake_fraction=1.0).plan(corpus, 32, Key.of(seed))
        (stranger,) = {start // 6 for start, _, _ in pieces(plan, 0)} - {0}
        homes.add(stranger)
    assert homes == set(range(1, 20))


def test_plain_text_between_conversations_is_passed_over():
    corpus = conversations([[4, 4], [9, 9, 9], [5, 5]], texts=(1,))
    plan = Dialogues(fake_fraction=0.0).plan(corpus, 32, KEY)
    assert [pieces(plan, row)[0][:2] for row in range(len(plan))] == [(0, 4), (35, 5)]


def test_a_plan_is_a_function_of_its_key():
    corpus = conversations([[3] * 9 for _ in range(30)])
    plans = [Dialogues().plan(corpus, 64, Key.of(seed)) for seed in (1, 1, 2)]
    assert plans[0].start.tolist() == plans[1].start.tolist() != plans[2].start.tolist()


@pytest.mark.parametrize(("texts", "have"), [((0, 1, 2), "has none"), ((0, 1), "has one")])
def test_a_corpus_without_conversations_is_told_how_to_get_some(texts, have):
    with pytest.raises(RecipeError, match=rf"corpus in talks {have}.*--dialogues TALKS.jsonl.*ernie:text"):
        Dialogues().plan(conversations([[4, 4], [9, 9], [5, 5]], texts=texts), 32, KEY)


@pytest.mark.parametrize("wrong", [{"min_turns": 1}, {"min_turns": 3, "max_turns": 2}, {"fake_fraction": 1.5}])
def test_impossible_numbers_are_refused(wrong):
    with pytest.raises(RecipeError, match="Dialogues needs"):
        Dialogues(**wrong)


@given(talks, st.integers(1, 3), st.sampled_from((0.01, 0.2)))
@settings(max_examples=60, deadline=None)
def test_both_parts_of_a_split_have_conversations(documents, shards, share):
    """They come last in a prepared corpus, after the text, but may also lie between."""
    texts = [[20, 20], [30], [25, 5]]
    corpus = conversations([*texts, *documents, *[[5, 5]] * 9], shards, texts=range(len(texts)))
    learn, judge = split_heldout(corpus, share)
    assert min(sum(len(shard.conversations) for shard in part.shards) for part in (learn, judge)) >= 2
    assert learn.manifest.counts.tokens + judge.manifest.counts.tokens == corpus.manifest.counts.tokens


def test_text_is_held_out_beside_few_conversations():
    """A shard holds text or conversations, and both are judged by."""
    texts = [[10, 10]] * 100
    corpus = conversations([*texts, *[[3, 3]] * 100], shards=2, texts=range(100))
    learn, judge = split_heldout(corpus, 0.01)
    assert [len(shard.conversations) for shard in judge.shards] == [0, 2]
    assert [len(shard.documents) - 1 for shard in judge.shards] == [1, 2]
    assert [len(shard.conversations) for shard in learn.shards] == [0, 98]
