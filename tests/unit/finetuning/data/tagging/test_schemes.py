"""Schemes are recognised by their tags; what they forbid, complete and spell."""

from __future__ import annotations

import itertools

import pytest

from unmask.core.errors import InputError
from unmask.finetuning.data.tagging.schemes import (
    EntitySpan,
    TagScheme,
    all_tags,
    allowed_transitions,
    detect_scheme,
    entities,
)


def scheme_of(*rows: str) -> TagScheme:
    return detect_scheme([row.split() for row in rows], [f"f:{number}" for number in range(1, len(rows) + 1)])


@pytest.mark.parametrize(
    ("rows", "scheme"),
    [
        (["B-PER I-PER O", "B-LOC B-LOC"], TagScheme.BIO),
        (["I-PER I-PER O I-LOC", "I-LOC B-LOC O I-ORG"], TagScheme.IOB1),
        (["B-PER E-PER S-LOC O"], TagScheme.BIOES),
        (["B M M E S B E"], TagScheme.BIOES),
        (["B-PER I-PER L-PER U-LOC"], TagScheme.BIOES),
        (["B I B B I"], TagScheme.BIO),
        (["NN VB O DT"], TagScheme.FREE),
        (["n v M"], TagScheme.FREE),
        (["B-PER-X I-PER-X O"], TagScheme.BIO),
        (["B-PER I-PER"] * 9 + ["I-PER O"], TagScheme.BIO),  # a slip of a hand
    ],
)
def test_schemes_are_recognised(rows, scheme):
    assert scheme_of(*rows) is scheme


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["B-PER O", "O O LOC"], "f:2: word 3 has the tag 'LOC', while others are like 'B-PER'"),
        (["B-PER O", "B O"], "f:2: word 1 has the tag 'B'"),
        (["B-PER M-PER E-PER", "B-PER I-PER"], "f:1: word 2 has the tag 'M-PER', and the tags begin with B, E, I, M"),
        (
            ["B-PER I-PER", "B-LOC O", "O I-LOC I-LOC"],
            "f:3: word 2 has the tag 'I-LOC', and begins an entity, as do 1 of",
        ),
        (["I-PER I-PER", "O B-LOC", "I-LOC"], "f:2: word 2 has the tag 'B-LOC'"),
    ],
)
def test_mixed_schemes_are_refused_with_the_odd_one(rows, said):
    with pytest.raises(InputError, match=said):
        scheme_of(*rows)


def test_the_other_tags_of_a_known_type_are_added():
    assert all_tags({"B-PER", "O"}, TagScheme.BIO) == ("O", "B-PER", "I-PER")
    assert all_tags({"I-PER", "I-LOC"}, TagScheme.IOB1) == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert all_tags({"S-PER", "O"}, TagScheme.BIOES) == ("O", "B-PER", "I-PER", "E-PER", "S-PER")
    assert all_tags({"M", "E", "B"}, TagScheme.BIOES) == ("B", "M", "E", "S")
    assert all_tags({"VB", "NN"}, TagScheme.FREE) == ("NN", "VB")


def allowed(row: str, scheme: TagScheme) -> bool:
    """Whether a whole row is legal."""
    labels = all_tags({"B-PER", "B-LOC", "O"} if scheme is not TagScheme.BIOES else {"S-PER", "S-LOC", "O"}, scheme)
    start, step, end = allowed_transitions(labels, scheme)
    tags = [labels.index(tag) for tag in row.split()]
    inner = all(step[a, b] for a, b in itertools.pairwise(tags))
    return bool(start[tags[0]] and inner and end[tags[-1]])


@pytest.mark.parametrize(
    ("scheme", "right", "wrong"),
    [
        (TagScheme.BIO, ["B-PER I-PER I-PER O", "B-PER B-PER"], ["I-PER", "O I-PER", "B-LOC I-PER"]),
        (TagScheme.IOB1, ["I-PER I-PER B-PER I-PER", "I-LOC I-PER"], ["B-PER", "O B-PER", "I-LOC B-PER"]),
        (
            TagScheme.BIOES,
            ["B-PER I-PER E-PER", "S-PER S-PER B-LOC E-LOC O"],
            ["I-PER E-PER", "B-PER", "B-PER O", "B-PER E-LOC", "S-PER E-PER", "B-PER I-PER", "B-PER S-PER", "O E-LOC"],
        ),
    ],
)
def test_the_rules_of_the_schemes(scheme, right, wrong):
    assert [allowed(row, scheme) for row in right] == [True] * len(right)
    assert [allowed(row, scheme) for row in wrong] == [False] * len(wrong)


def test_free_tags_follow_each_other_as_they_like():
    start, step, end = allowed_transitions(("NN", "VB"), TagScheme.FREE)
    assert start.all()
    assert step.all()
    assert end.all()


def test_entities_are_read_as_the_conll_script_reads_them():
    assert entities(["O", "B-PER", "I-PER", "B-PER", "O", "I-LOC", "I-ORG"]) == [
        EntitySpan("PER", 1, 3),
        EntitySpan("PER", 3, 4),
        EntitySpan("LOC", 5, 6),
        EntitySpan("ORG", 6, 7),
    ]
    assert entities(["B-X", "E-X", "S-X", "B-X"]) == [
        EntitySpan("X", 0, 2),
        EntitySpan("X", 2, 3),
        EntitySpan("X", 3, 4),
    ]
    assert [(one.start, one.end) for one in entities(["B", "M", "E", "S"])] == [(0, 3), (3, 4)]
    assert entities(["O", "O"]) == entities([]) == []
