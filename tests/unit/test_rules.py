"""Bare rules: each is named once, says what its paper says, and works."""

import numpy as np
import pytest

from unmask.codec import decode, encode, override
from unmask.errors import RecipeError
from unmask.records import Cloze, NextToken, Ordering, Rewrite
from unmask.rules import bare_rule, rule, rules
from unmask.tasks import Task
from unmask.views import CAUSAL, TWO_STREAMS

NAMES = [found.name for found in rules()]


def test_names_are_unique_and_each_finds_its_own_task():
    assert len(set(NAMES)) == len(NAMES)
    for found in rules():
        assert rule(found.name) == found.task
        assert found.task.name == found.name


def test_every_rule_that_the_family_needs_is_there():
    clozes = {"token", "word", "ngram", "ngram-inverse", "span", "phrase", "entity", "similar"}
    rewritings = {"t5", "bart", "infill", "delete", "permute", "rotate", "mass"}
    assert set(NAMES) == clozes | rewritings | {"xlnet", "gpt"}
    kinds = {**dict.fromkeys(clozes, Cloze), **dict.fromkeys(rewritings, Rewrite), "xlnet": Ordering, "gpt": NextToken}
    assert {name: rule(name).corrupt.makes[0] for name in NAMES} == kinds


def test_an_unknown_name_is_refused_with_what_exists():
    with pytest.raises(RecipeError, match=r"no rule 'spam'.*token, word, ngram"):
        rule("spam")


def test_numbers_are_those_of_the_papers():
    span = rule("span").corrupt.select
    assert np.dot(span.run, np.arange(1, 11)) == pytest.approx(3.797, abs=1e-3)
    assert rule("ngram").corrupt.select.run == (0.4, 0.3, 0.2, 0.1)
    assert rule("ngram-inverse").corrupt.select.run == pytest.approx((6 / 11, 3 / 11, 2 / 11))
    similar = rule("similar").corrupt.replace
    assert (similar.similar, similar.random, similar.keep, similar.mask) == (0.8, 0.1, 0.1, 0.0)
    assert {rule(name).corrupt.select.rate for name in ("token", "word", "span", "phrase", "entity")} == {0.15}
    assert rule("gpt").view == CAUSAL
    assert rule("xlnet").view == TWO_STREAMS


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_is_data(name):
    assert decode(encode(rule(name)), Task) == rule(name)


def test_a_rule_can_be_changed_by_name():
    assert override(rule("token"), "corrupt.select.rate", "0.3").corrupt.select.rate == 0.3


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_introduces_itself_on_one_line(name):
    found = bare_rule(name)
    assert found.says
    assert found.term
    assert len(f"{found.name:14}{found.says}  {found.paper.split(',')[0]}") <= 80
