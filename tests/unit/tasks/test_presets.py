"""Bare rules: each is named once, says what its paper says, and works."""

import numpy as np
import pytest

from unmask.config.attention_pattern import CAUSAL, XLNET_STREAMS
from unmask.core.codec import decode, encode, override
from unmask.core.errors import RecipeError
from unmask.core.records import Cloze, DecoderTarget, NextToken, PermutedTarget
from unmask.tasks.presets import find_preset, preset, presets
from unmask.tasks.recipe import Task

NAMES = [found.name for found in presets()]


def test_names_are_unique_and_each_finds_its_own_task():
    assert len(set(NAMES)) == len(NAMES)
    for found in presets():
        assert preset(found.name) == found.task
        assert found.task.name == found.name


def test_every_rule_that_the_family_needs_is_there():
    clozes = {"token", "word", "ngram", "ngram-inverse", "span", "phrase", "entity", "similar"}
    rewritings = {"t5", "bart", "infill", "delete", "permute", "rotate", "mass"}
    assert set(NAMES) == clozes | rewritings | {"xlnet", "gpt"}
    kinds = {
        **dict.fromkeys(clozes, Cloze),
        **dict.fromkeys(rewritings, DecoderTarget),
        "xlnet": PermutedTarget,
        "gpt": NextToken,
    }
    assert {name: preset(name).corruption.target_types[0] for name in NAMES} == kinds


def test_an_unknown_name_is_refused_with_what_exists():
    with pytest.raises(RecipeError, match=r"no rule 'spam'.*token, word, ngram"):
        preset("spam")


def test_numbers_are_those_of_the_papers():
    span = preset("span").corruption.select
    assert np.dot(span.run_lengths, np.arange(1, 11)) == pytest.approx(3.797, abs=1e-3)
    assert preset("ngram").corruption.select.run_lengths == (0.4, 0.3, 0.2, 0.1)
    assert preset("ngram-inverse").corruption.select.run_lengths == pytest.approx((6 / 11, 3 / 11, 2 / 11))
    similar = preset("similar").corruption.replace
    assert (similar.similar, similar.random, similar.keep, similar.mask) == (0.8, 0.1, 0.1, 0.0)
    assert {preset(name).corruption.select.rate for name in ("token", "word", "span", "phrase", "entity")} == {0.15}
    assert preset("gpt").attention == CAUSAL
    assert preset("xlnet").attention == XLNET_STREAMS


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_is_data(name):
    assert decode(encode(preset(name)), Task) == preset(name)


def test_a_rule_can_be_changed_by_name():
    assert override(preset("token"), "corruption.select.rate", "0.3").corruption.select.rate == 0.3


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_introduces_itself_on_one_line(name):
    found = find_preset(name)
    assert found.description
    assert found.chinese_name
    assert len(f"{found.name:14}{found.description}  {found.paper.split(',')[0]}") <= 80
