"""Rules against loops, leaks against a numeric attention stack, and the family's views one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.config.attention_pattern import (
    BIDIRECTIONAL_LM,
    CAUSAL,
    FULL,
    PREFIX_LM,
    WITHIN_DOCUMENT,
    XLNET_STREAMS,
    AntiCausal,
    AttentionPattern,
    AttentionRule,
    Causal,
    FactorizationOrder,
    Full,
    PredictionSite,
    PrefixLM,
    RowCoordinates,
    SlidingWindow,
    Stream,
    StreamInit,
    WithinDocument,
    find_leaks,
    next_token_sites,
    own_token_sites,
    previous_token_sites,
    render,
    single_stream,
)
from unmask.core.errors import RecipeError
from unmask.core.rng import DrawPurpose, Key, uniform

ROW = RowCoordinates.of(6)
DRAWN = RowCoordinates.of(6, rank=(-1, 2, 0, -1, 3, 1))

SEES = {
    Full(): lambda row, i, j: True,
    Causal(): lambda row, i, j: j <= i,
    AntiCausal(): lambda row, i, j: j >= i,
    PrefixLM(): lambda row, i, j: row.prefix[j] if row.prefix[i] else row.prefix[j] or j <= i,
    SlidingWindow(2): lambda row, i, j: abs(i - j) <= 2,
    WithinDocument(): lambda row, i, j: row.document[i] == row.document[j],
    FactorizationOrder(False): lambda row, i, j: row.rank[j] == -1 or row.rank[j] <= row.rank[i],
    FactorizationOrder(True): lambda row, i, j: row.rank[j] == -1 or row.rank[j] < row.rank[i],
    Causal() & SlidingWindow(1): lambda row, i, j: i - 1 <= j <= i,
    Causal() | PrefixLM(): lambda row, i, j: j <= i or row.prefix[j],
    (Causal() | AntiCausal()) & WithinDocument(): lambda row, i, j: row.document[i] == row.document[j],
}


@pytest.mark.parametrize("rule", SEES, ids=str)
def test_a_rule_allows_what_its_sentence_says(rule: AttentionRule) -> None:
    row = RowCoordinates.of(7, prefix=3, document=(0, 0, 0, 1, 1, 2, 2), rank=(-1, 4, 0, -1, 2, 1, 3))
    expected = [[bool(SEES[rule](row, i, j)) for j in range(7)] for i in range(7)]
    assert rule.matrix(row).tolist() == expected


def test_an_empty_row_is_a_row() -> None:
    assert Full().matrix(RowCoordinates.of(0)).shape == (0, 0)
    assert find_leaks(CAUSAL, RowCoordinates.of(0), []) == []


def test_a_layout_refuses_coordinates_of_another_length() -> None:
    with pytest.raises(ValueError, match="row of 3"):
        RowCoordinates.of(3, document=(0, 0))


@pytest.mark.parametrize(
    ("view", "row", "answers"),
    [
        (CAUSAL, ROW, next_token_sites(ROW)),
        (
            single_stream(Causal() & WithinDocument()),
            RowCoordinates.of(6, document=(0, 0, 0, 1, 1, 1)),
            next_token_sites(ROW),
        ),
        (single_stream(Causal() & SlidingWindow(1)), ROW, next_token_sites(ROW)),
        (single_stream(AntiCausal()), ROW, previous_token_sites(ROW)),
        (PREFIX_LM, RowCoordinates.of(6, prefix=3), next_token_sites(RowCoordinates.of(6, prefix=3))),
        (BIDIRECTIONAL_LM, ROW, next_token_sites(ROW, "forward") + previous_token_sites(ROW, "backward")),
        (XLNET_STREAMS, DRAWN, own_token_sites((1, 2, 4, 5), "query")),
    ],
    ids=["causal", "causal documents", "causal window", "backward", "prefix", "two directions", "two streams"],
)
def test_the_views_of_the_family_are_safe(
    view: AttentionPattern, row: RowCoordinates, answers: list[PredictionSite]
) -> None:
    assert answers
    assert find_leaks(view, row, answers) == []


@pytest.mark.parametrize("rule", [Full(), SlidingWindow(1), Causal() | SlidingWindow(1)], ids=str)
def test_a_causal_loss_under_a_view_that_looks_ahead_leaks_everywhere(rule: AttentionRule) -> None:
    found = find_leaks(single_stream(rule), ROW, next_token_sites(ROW))
    assert [leak.site for leak in found] == next_token_sites(ROW)
    assert found[2].explain() == (
        "main at 2 must not know token 3, but: token 3 enters main at 3; in layer 1 main at 2 reads main at 3"
    )


def test_a_causal_loss_on_the_source_of_a_prefix_leaks() -> None:
    row = RowCoordinates.of(6, prefix=3)
    assert [leak.site.read_at for leak in find_leaks(PREFIX_LM, row, next_token_sites(ROW))] == [0, 1]


@pytest.mark.parametrize("strict", [False, True])
def test_xlnet_with_one_stream_leaks_its_own_token(strict: bool) -> None:
    found = find_leaks(single_stream(FactorizationOrder(strict)), DRAWN, own_token_sites((1, 2, 4, 5)))
    assert [leak.path for leak in found] == [(("main", i),) for i in (1, 2, 4, 5)]
    assert found[0].explain() == "main at 1 must not know token 1, but: token 1 enters main at 1"


def test_xlnet_whose_query_reads_its_own_content_leaks() -> None:
    content, query = XLNET_STREAMS.streams
    found = find_leaks(
        AttentionPattern((content, replace(query, rule=FactorizationOrder(False)))),
        DRAWN,
        own_token_sites((1,), "query"),
    )
    assert found[0].path == (("content", 1), ("query", 1))


def test_elmo_whose_backward_direction_reads_the_forward_layer_leaks_from_the_second_layer_on() -> None:
    forward, backward = BIDIRECTIONAL_LM.streams
    mixed = AttentionPattern((forward, replace(backward, reads_from="forward")))
    answers = previous_token_sites(ROW, "backward")
    assert find_leaks(mixed, ROW, answers, depth=1) == []
    found = find_leaks(mixed, ROW, answers, depth=2)
    assert [leak.site for leak in found] == answers
    assert found[2].explain() == (
        "backward at 3 must not know token 2, but: token 2 enters forward at 2; "
        "in layer 1 forward at 3 reads forward at 2; in layer 2 backward at 3 reads forward at 3"
    )


def test_a_cloze_is_safe_because_its_input_is_hidden() -> None:
    assert find_leaks(FULL, ROW, own_token_sites((1, 4)), hidden=(1, 4)) == []
    assert [leak.site.target for leak in find_leaks(FULL, ROW, own_token_sites((1, 4)), hidden=(1,))] == [4]


def test_documents_packed_into_one_row_do_not_reach_each_other() -> None:
    row = RowCoordinates.of(6, document=(0, 0, 0, 1, 1, 1))
    across = [PredictionSite("main", i, j) for i in range(6) for j in range(6) if (i < 3) != (j < 3)]
    assert find_leaks(WITHIN_DOCUMENT, row, across) == []
    assert len(find_leaks(FULL, row, across)) == len(across)


def test_a_path_takes_as_many_layers_as_the_window_needs() -> None:
    row = RowCoordinates.of(300)
    far = [PredictionSite("main", 0, 12)]
    assert find_leaks(single_stream(SlidingWindow(4)), row, far, depth=2) == []
    (leak,) = find_leaks(single_stream(SlidingWindow(4)), row, far)
    assert [position for _, position in leak.path] == [12, 8, 4, 0]


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: AttentionPattern(()), "one or more streams"),
        (lambda: AttentionPattern((Stream("a", Causal(), "a"), Stream("a", AntiCausal(), "a"))), "names of their own"),
        (lambda: AttentionPattern((Stream("query", Causal(), "content"),)), "query reads from content"),
        (lambda: SlidingWindow(-1), "radius of 0 or more, found -1"),
        (lambda: find_leaks(CAUSAL, ROW, [PredictionSite("query", 0, 0)]), "no stream query; it has \\['main'\\]"),
    ],
)
def test_a_view_that_cannot_work_is_refused_with_a_sentence(build: object, sentence: str) -> None:
    assert callable(build)
    with pytest.raises(RecipeError, match=sentence):
        build()


def test_an_answer_before_the_row_is_refused() -> None:
    with pytest.raises(ValueError, match="count from 0"):
        PredictionSite("main", -1, 0)


def test_the_picture_of_two_streams() -> None:
    assert render(XLNET_STREAMS, RowCoordinates.of(3, rank=(-1, 1, 0))) == [
        "content: reads content",
        "      0  1  2",
        "   0  #  .  .",
        "   1  #  #  #",
        "   2  #  .  #",
        "query: reads content, does not start from its own token",
        "      0  1  2",
        "   0  #  .  .",
        "   1  #  .  #",
        "   2  #  .  .",
    ]


def test_a_picture_of_a_long_row_fits_into_a_terminal_and_says_what_it_left_out() -> None:
    lines = render(CAUSAL, RowCoordinates.of(300))
    assert lines[0] == "the first 24 of 300 positions"
    assert max(map(len, lines)) <= 80
    assert len(lines) == 27


def run_stack(
    view: AttentionPattern, row: RowCoordinates, tokens: np.ndarray, hidden: tuple[int, ...], depth: int
) -> list[np.ndarray]:
    """A small attention network, stream by stream and position by position, with weights drawn from a fixed key."""
    length, width = tokens.shape
    embedded = tokens + noise("position", length, width)
    embedded[list(hidden)] = noise("mask", len(hidden), width)
    blank = noise("blank", length, width)
    states = [embedded if s.starts_from is StreamInit.TOKEN else blank for s in view.streams]
    for layer in range(depth):
        after = []
        for place, stream in enumerate(view.streams):
            query, key, value = (noise(f"{layer}{place}{name}", width, width) for name in "qkv")
            source, new = states[view.index_of(stream.reads_from)], states[place].copy()
            allowed = stream.rule.matrix(row)
            for i in range(length):
                keys = np.flatnonzero(allowed[i])
                if len(keys):
                    scores = np.exp((states[place][i] @ query) @ (source[keys] @ key).T / width)
                    new[i] += np.tanh(scores / scores.sum() @ source[keys] @ value)
            after.append(new)
        states = after
    return states


def noise(name: str, rows: int, columns: int) -> np.ndarray:
    return uniform(Key.of(3, name).bits(DrawPurpose.MIX, rows * columns)).reshape(rows, columns) * 2 - 1


RULES = st.recursive(
    st.sampled_from(
        [
            Full(),
            Causal(),
            AntiCausal(),
            PrefixLM(),
            SlidingWindow(1),
            WithinDocument(),
            FactorizationOrder(True),
            FactorizationOrder(False),
        ]
    ),
    lambda inner: st.builds(lambda a, b, both: a & b if both else a | b, inner, inner, st.booleans()),
    max_leaves=3,
)
NAMES = ("a", "b")


@st.composite
def views(draw: st.DrawFn) -> AttentionPattern:
    names = NAMES[: draw(st.integers(1, 2))]
    start = st.sampled_from(StreamInit)
    return AttentionPattern(
        tuple(Stream(name, draw(RULES), draw(st.sampled_from(names)), draw(start)) for name in names)
    )


@st.composite
def rows(draw: st.DrawFn) -> RowCoordinates:
    document = sorted(draw(st.lists(st.integers(0, 2), min_size=6, max_size=6)))
    rank = draw(st.permutations((-1, -1, 0, 1, 2, 3)))
    return RowCoordinates.of(6, prefix=draw(st.integers(0, 6)), document=document, rank=rank)


def check_against_numbers(view: AttentionPattern, row: RowCoordinates, hidden: tuple[int, ...], depth: int) -> None:
    tokens = noise("tokens", 6, 5)
    plain = run_stack(view, row, tokens, hidden, depth)
    every = [PredictionSite(stream.name, i, j) for stream in view.streams for i in range(6) for j in range(6)]
    reached = {leak.site for leak in find_leaks(view, row, every, hidden, depth)}
    for holds in range(6):
        other = tokens.copy()
        other[holds] = noise("other", 1, 5)
        moved = run_stack(view, row, other, hidden, depth)
        for place, stream in enumerate(view.streams):
            for i in range(6):
                changed = not np.array_equal(plain[place][i], moved[place][i])
                assert changed == (PredictionSite(stream.name, i, holds) in reached), (stream.name, i, holds)


@settings(max_examples=60, deadline=None)
@given(views(), rows(), st.sets(st.integers(0, 5), max_size=3), st.integers(0, 3))
def test_an_output_moves_exactly_when_the_token_can_be_reached(
    view: AttentionPattern, row: RowCoordinates, hidden: set[int], depth: int
) -> None:
    check_against_numbers(view, row, tuple(sorted(hidden)), depth)


@pytest.mark.parametrize("view", [FULL, WITHIN_DOCUMENT, CAUSAL, PREFIX_LM, BIDIRECTIONAL_LM, XLNET_STREAMS])
def test_the_ready_made_views_agree_with_the_numbers(view: AttentionPattern) -> None:
    row = RowCoordinates.of(6, prefix=2, document=(0, 0, 0, 1, 1, 1), rank=(-1, 2, 0, -1, 3, 1))
    check_against_numbers(view, row, (4,), 3)


@settings(max_examples=60, deadline=None)
@given(views(), rows())
def test_a_path_is_made_of_reads_that_the_view_allows(view: AttentionPattern, row: RowCoordinates) -> None:
    every = [PredictionSite(stream.name, i, j) for stream in view.streams for i in range(6) for j in range(6)]
    for leak in find_leaks(view, row, every):
        entered, read = leak.path[0], leak.path[-1]
        assert view.streams[view.index_of(entered[0])].starts_from is StreamInit.TOKEN
        assert entered[1] == leak.site.target
        assert read == (leak.site.stream, leak.site.read_at)
        for (source, key), (reader, query) in zip(leak.path, leak.path[1:], strict=False):
            stream = view.streams[view.index_of(reader)]
            assert stream.reads_from == source
            assert stream.rule.matrix(row)[query, key]
