"""A rule in words: the numbers in a sentence are those of the part, and a user's own part explains itself."""

from dataclasses import dataclass

import numpy as np
import pytest

from unmask.codec import override
from unmask.corrupt.select import OneOf, Tokens, Units
from unmask.examples.visits import Copies, EveryVisit
from unmask.records import Example, Layer, UnitMap
from unmask.rules import rule, rules
from unmask.views import PREFIX, TWO_DIRECTIONS, TWO_STREAMS
from unmask.walk.wording import budget, count, renewal, shows, sight, where


def row(length):
    zeros = np.zeros(length, dtype=np.int32)
    fixed = np.zeros(length, dtype=np.bool_)
    fixed[[0, -1]] = True
    bits = np.full(length, 3, dtype=np.uint8)
    return Example(zeros, bits, zeros, fixed, UnitMap(bits), np.array([0, length]))


@pytest.mark.parametrize("found", rules(), ids=lambda found: found.name)
def test_every_rule_is_said(found):
    corrupt = found.task.corrupt
    assert where(corrupt)
    assert shows(corrupt)
    assert "<" not in where(corrupt) + shows(corrupt) + budget(corrupt, row(20))


def test_the_numbers_are_the_parts_own():
    changed = override(override(rule("token"), "corrupt.select.rate", "0.25"), "corrupt.replace.mask", "0.8").corrupt
    assert where(changed) == "single tokens, 25 % of the row"
    assert budget(changed, row(20)) == "0.25 × 20 tokens = 5.0, so at most 5"
    assert where(rule("ngram").corrupt).startswith("runs of 1 to 4 words (40 / 30 / 20 / 10 %, mean 2.0)")
    assert "mean 3.8" in where(rule("span").corrupt)
    assert shows(rule("similar").corrupt) == "80 % a similar word, 10 % random, 10 % kept as it is; drawn for each word"
    assert budget(rule("xlnet").corrupt, row(20)) == "1/6 × 18 text tokens = 3.0, rounded"


def test_one_is_not_many():
    assert (count(1, "word"), count(0, "word"), count(1200, "word")) == ("1 word", "0 words", "1,200 words")
    assert "× 1 text token =" in budget(rule("xlnet").corrupt, row(3))


def test_a_mixture_names_its_parts():
    mixed = OneOf((Tokens(), Units(Layer.ENTITY)), (0.4, 0.6))
    assert where(mixed) == (
        "one of these for each row: 40 % single tokens, 15 % of the row; "
        "60 % whole entities first, then words, 15 % of the row's tokens"
    )


def test_a_part_of_a_users_own_explains_itself():
    @dataclass(frozen=True)
    class Vowels:
        """Every vowel of the text.

        And more that does not matter here.
        """

    assert where(Vowels()) == shows(Vowels()) == "Every vowel of the text"
    assert budget(Vowels(), row(9)) == ""


def test_views_and_visits():
    assert sight(TWO_STREAMS, False).endswith("query: a position sees what was drawn before it, but not itself")
    assert sight(TWO_DIRECTIONS, False).startswith("forward: a position sees itself and what stands before it")
    assert "UniLM" in sight(PREFIX, False)
    assert "decoder" in sight(PREFIX, True)
    assert renewal(Copies(10), 23) == "visit 23: copy 3 of 10 frozen ones (static masking 静态)"
    assert "drawn anew" in renewal(EveryVisit(), 23)
