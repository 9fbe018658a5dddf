"""A rule in words: the numbers in a sentence are those of the part, and a user's own part explains itself."""

from dataclasses import dataclass

import numpy as np
import pytest

from unmask.config.attention_pattern import BIDIRECTIONAL_LM, PREFIX_LM, XLNET_STREAMS
from unmask.core.codec import override
from unmask.core.records import RowBatch, TokenUnits, UnitKind
from unmask.data.corrupt.masking import OneOfSelectors, RandomTokens, WholeUnits
from unmask.data.input_formats.row_plan import DynamicMasking, StaticMasking
from unmask.tasks.presets import preset, presets
from unmask.walks.describe import (
    describe_attention,
    describe_budget,
    describe_masking,
    describe_replacement,
    describe_selection,
    pluralize,
)


def row(length):
    zeros = np.zeros(length, dtype=np.int32)
    fixed = np.zeros(length, dtype=np.bool_)
    fixed[[0, -1]] = True
    bits = np.full(length, 3, dtype=np.uint8)
    return RowBatch(zeros, bits, zeros, fixed, TokenUnits(bits), np.array([0, length]))


@pytest.mark.parametrize("found", presets(), ids=lambda found: found.name)
def test_every_rule_is_said(found):
    corrupt = found.task.corruption
    assert describe_selection(corrupt)
    assert describe_replacement(corrupt)
    assert "<" not in describe_selection(corrupt) + describe_replacement(corrupt) + describe_budget(corrupt, row(20))


def test_the_numbers_are_the_parts_own():
    changed = override(
        override(preset("token"), "corruption.select.rate", "0.25"), "corruption.replace.mask", "0.8"
    ).corruption
    assert describe_selection(changed) == "single tokens, 25 % of the row"
    assert describe_budget(changed, row(20)) == "0.25 × 20 tokens = 5.0, so at most 5"
    assert describe_selection(preset("ngram").corruption).startswith(
        "runs of 1 to 4 words (40 / 30 / 20 / 10 %, mean 2.0)"
    )
    assert "mean 3.8" in describe_selection(preset("span").corruption)
    assert (
        describe_replacement(preset("similar").corruption)
        == "80 % a similar word, 10 % random, 10 % kept as it is; drawn for each word"
    )
    assert describe_budget(preset("xlnet").corruption, row(20)) == "1/6 × 18 text tokens = 3.0, rounded"


def test_one_is_not_many():
    assert (pluralize(1, "word"), pluralize(0, "word"), pluralize(1200, "word")) == ("1 word", "0 words", "1,200 words")
    assert "× 1 text token =" in describe_budget(preset("xlnet").corruption, row(3))


def test_a_mixture_names_its_parts():
    mixed = OneOfSelectors((RandomTokens(), WholeUnits(UnitKind.ENTITY)), (0.4, 0.6))
    assert describe_selection(mixed) == (
        "one of these for each row: 40 % single tokens, 15 % of the row; "
        "60 % whole entities first, then words, 15 % of the row's tokens"
    )


def test_a_part_of_a_users_own_explains_itself():
    @dataclass(frozen=True)
    class Vowels:
        """Every vowel of the text.

        And more that does not matter here.
        """

    assert describe_selection(Vowels()) == describe_replacement(Vowels()) == "Every vowel of the text"
    assert describe_budget(Vowels(), row(9)) == ""


def test_views_and_visits():
    assert describe_attention(XLNET_STREAMS, False).endswith(
        "query: a position attends to those drawn before it, not to itself"
    )
    assert describe_attention(BIDIRECTIONAL_LM, False).startswith(
        "forward: a position attends to itself and the positions before it"
    )
    assert "UniLM" in describe_attention(PREFIX_LM, False)
    assert "decoder" in describe_attention(PREFIX_LM, True)
    assert describe_masking(StaticMasking(10), 23) == "visit 23: copy 3 of 10 frozen ones (static masking 静态)"
    assert "drawn anew" in describe_masking(DynamicMasking(), 23)
