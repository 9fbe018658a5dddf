"""The claims of the bench: every arm is a recipe that can be built, and a verdict follows its rule."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from unmask.cli.short import shortened
from unmask.cli.terminal import changed
from unmask.codec import fingerprint
from unmask.family import member

BENCH = Path(__file__).parents[3] / "bench"
sys.path.insert(0, str(BENCH))
from claims import Measured, verdict  # noqa: E402
from claims_list import CLAIMS, Expect  # noqa: E402

sys.path.remove(str(BENCH))


@pytest.mark.parametrize("name", CLAIMS)
def test_every_arm_is_a_recipe_of_its_own(name):
    claim = CLAIMS[name]
    made = set()
    for words in claim.arms.values():
        own, *changes = shlex.split(words)
        assert all(change.startswith("--set=") for change in changes)
        recipe = changed(shortened(member(own, "mini")), [one.removeprefix("--set=") for one in changes], "")
        made.add(fingerprint(recipe))
    assert len(made) == len(claim.arms)
    for expect in claim.expects:
        assert {expect.more, expect.less} <= set(claim.arms)


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ((0.6, 0.7, 0.8), (0.5, 0.6, 0.7), "borne out; mean difference +0.1000"),
        ((0.5, 0.6, 0.7), (0.6, 0.7, 0.8), "the other way round; mean difference -0.1000"),
        ((0.6, 0.5), (0.5, 0.6), "not borne out, no clear difference; mean difference +0.0000"),
        ((0.9, 0.9, 0.9, 0.9, 0.499), (0.5,) * 5, "borne out; mean difference +0.3198"),
        ((0.6,), (0.5,), "one seed decides nothing; difference +0.1000"),
        ((), (0.5,), "not measured"),
    ],
    ids=["every seed", "reversed", "disagree", "two errors", "one seed", "nothing"],
)
def test_a_verdict_needs_every_seed_or_two_standard_errors(ours, theirs, said):
    values = {"a": dict(enumerate(ours)), "b": dict(enumerate(theirs))}
    assert f"score: a more than b: {said}" in verdict(Expect("*ore", "a", "b"), Measured("score", values))


def test_about_as_much_means_a_small_difference_or_an_unclear_one():
    expect = Expect("loss", "a", "b", equal=0.05)
    near = Measured("loss", {"a": {0: 1.01, 1: 1.02}, "b": {0: 1.0, 1: 1.0}})
    far = Measured("loss", {"a": {0: 1.21, 1: 1.22}, "b": {0: 1.0, 1: 1.0}})
    assert "borne out" in verdict(expect, near)
    assert "not borne out" not in verdict(expect, near)
    assert "not borne out" in verdict(expect, far)
