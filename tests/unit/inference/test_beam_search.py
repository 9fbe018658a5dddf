"""Beam search against a search that is written out, and against all texts that there are."""

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.config.inference import BeamSearch
from unmask.core.errors import InputError
from unmask.inference.beam_search import BeamState, beam_search

END = 0


class Table:
    """The log-probability of every token after every beginning, for some sources, drawn at random."""

    def __init__(self, seed, sources, vocabulary, most, sharp=1.0):
        self.vocabulary = vocabulary
        nodes = sum(vocabulary**depth for depth in range(most))
        drawn = torch.randn(sources, nodes, vocabulary, generator=torch.Generator().manual_seed(seed)) * sharp
        self.said = drawn.double().log_softmax(-1).float()
        self.calls: list[BeamState] = []

    def node(self, ids):
        """The number of a beginning: all shorter ones come before it."""
        number = sum(self.vocabulary**depth for depth in range(ids.shape[-1]))
        for place in range(ids.shape[-1]):
            number = number + ids[..., place] * self.vocabulary ** (ids.shape[-1] - 1 - place)
        return torch.as_tensor(number).expand(ids.shape[:-1])

    def __call__(self, beams):
        self.calls.append(beams)
        return self.said[beams.source_B[:, None], self.node(beams.ids_BWL)]

    def after(self, source, ids):
        """The log-probabilities after one beginning, as a list."""
        return self.said[source, self.node(torch.tensor(ids, dtype=torch.int64))].tolist()


def repeats(ids, size):
    runs = [tuple(ids[at : at + size]) for at in range(len(ids) - size + 1)]
    return bool(size) and len(set(runs)) < len(runs)


def best_of_all(table, source, how):
    """The best of all texts, tried one after another."""
    found = []
    words = range(1, table.vocabulary)
    for length in range(how.max_new_tokens):
        for ids in itertools.product(words, repeat=length):
            if not repeats(ids, how.no_repeat_ngram_size):
                total = sum(table.after(source, ids[:at])[token] for at, token in enumerate((*ids, END)))
                found.append((total / how.length_divisor(length + 1), ids))
    return max(found)


def written_out(table, source, how):
    """The search as its module tells it: one text, one continuation after another."""
    going, finished = [(0.0, ())], []
    for length in range(1, how.max_new_tokens + 1):
        every = []
        for total, ids in going:
            for token, said in enumerate(table.after(source, ids)):
                allowed = token == END or (
                    length < how.max_new_tokens and not repeats((*ids, token), how.no_repeat_ngram_size)
                )
                every += [(total + said, ids, token)] if allowed else []
        every.sort(reverse=True)
        finished += [
            (total / how.length_divisor(length), ids) for total, ids, token in every[: how.num_beams] if token == END
        ]
        going = [(total, (*ids, token)) for total, ids, token in every if token != END][: how.num_beams]
        if not going or (
            len(finished) >= how.num_beams and going[0][0] / how.length_divisor(length) <= max(finished)[0]
        ):
            break
    return max(finished)


def close(found, expected):
    assert found.ids == expected[1]
    assert found.score == pytest.approx(expected[0], abs=1e-4)


seeds = st.integers(0, 2**31)
penalties = st.sampled_from([0.0, 0.6, 1.0, 2.0, -0.5])
small = settings(max_examples=40, deadline=None)


@given(seeds, st.integers(2, 4), st.integers(1, 4), penalties, st.integers(0, 2))
@small
def test_a_beam_as_wide_as_all_beginnings_finds_the_best_text_there_is(seed, vocabulary, most, penalty, no_repeat):
    table = Table(seed, 2, vocabulary, most)
    how = BeamSearch(sum((vocabulary - 1) ** depth for depth in range(most)) + 1, most, penalty, no_repeat)
    for source, found in enumerate(beam_search(table, 2, END, how)):
        close(found, best_of_all(table, source, how))


@given(seeds, st.integers(1, 4), st.integers(2, 5), st.integers(1, 5), penalties, st.integers(0, 3))
@small
def test_a_narrow_beam_equals_the_search_that_is_written_out(seed, width, vocabulary, most, penalty, no_repeat):
    table = Table(seed, 3, vocabulary, most, sharp=2.0)
    how = BeamSearch(width, most, penalty, no_repeat)
    for source, found in enumerate(beam_search(table, 3, END, how)):
        close(found, written_out(table, source, how))


@given(seeds, st.integers(1, 6))
@small
def test_width_1_takes_the_likeliest_token_each_time(seed, most):
    table, ids = Table(seed, 1, 4, most), []
    while len(ids) < most - 1 and (token := int(torch.tensor(table.after(0, ids)).argmax())) != END:
        ids.append(token)
    assert beam_search(table, 1, END, BeamSearch(1, most))[0].ids == tuple(ids)


@given(seeds, st.integers(1, 3))
@small
def test_a_source_is_written_to_alone_as_among_others(seed, width):
    table, how = Table(seed, 4, 4, 5, sharp=3.0), BeamSearch(width, 5, 0.6)
    together = beam_search(table, 4, END, how)
    for source in range(4):
        one = Table(seed, 4, 4, 5, sharp=3.0)
        one.said = one.said[source : source + 1]
        alone = beam_search(one, 1, END, how)[0]
        assert alone.ids == together[source].ids


@given(seeds, st.integers(1, 3))
@small
def test_a_step_is_told_from_where_each_text_goes_on(seed, width):
    """What a network must know to move what it keeps."""
    table = Table(seed, 4, 4, 6, sharp=3.0)
    beam_search(table, 4, END, BeamSearch(width, 6))
    for before, after in itertools.pairwise(table.calls):
        followed = before.ids_BWL[after.surviving_B[:, None], after.parent_BW]
        assert torch.equal(after.ids_BWL[..., :-1], followed)
        assert torch.equal(after.source_B, before.source_B[after.surviving_B])
        stayed = followed.shape == before.ids_BWL.shape and torch.equal(
            after.parent_BW, torch.arange(width).expand_as(after.parent_BW)
        )
        assert after.is_reordered == (not stayed)


def test_sources_that_are_done_leave():
    table = Table(0, 2, 3, 6)
    table.said[0, :, END] = -0.01  # the first source has nothing to say
    beam_search(table, 2, END, BeamSearch(1, 6))
    assert [len(beams.source_B) for beams in table.calls[:2]] == [2, 1]
    assert table.calls[1].source_B.tolist() == [1]


def test_a_longer_text_gains_from_the_penalty():
    table = Table(0, 1, 3, 3)
    table.said[:] = torch.tensor([0.4, 0.35, 0.25]).log()
    lengths = [len(beam_search(table, 1, END, BeamSearch(8, 3, penalty))[0].ids) for penalty in (0.0, 9.0)]
    assert lengths == [0, 2]


def test_a_text_that_is_almost_certain_is_not_cut_short_by_what_ends_beside_it():
    table = Table(0, 1, 4, 6)
    table.said[:] = torch.tensor([0.01, 0.97, 0.01, 0.01]).log()
    table.said[0, table.node(torch.tensor([1, 1, 1, 1]))] = torch.tensor([0.97, 0.01, 0.01, 0.01]).log()
    assert beam_search(table, 1, END, BeamSearch(2, 6))[0].ids == (1, 1, 1, 1)


@pytest.mark.parametrize("wrong", [{"num_beams": 0}, {"max_new_tokens": 0}, {"no_repeat_ngram_size": -1}])
def test_a_search_that_cannot_be_made_is_refused(wrong):
    with pytest.raises(InputError, match="needs 1 or more beams"):
        replace(BeamSearch(), **wrong)
