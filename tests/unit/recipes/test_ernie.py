"""ERNIE as published, and its two forms."""

from __future__ import annotations

import pytest

from unmask.codec import decode, encode
from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.select import OneOf, Tokens, Units
from unmask.errors import RecipeError
from unmask.examples.dialogues import Dialogues
from unmask.family import member
from unmask.nets.trunk import Activation
from unmask.records import Layer
from unmask.tasks import Recipe, Task


def select(task: Task) -> object:
    assert isinstance(task.corrupt, MaskOut)
    return task.corrupt.select


def test_levels_follow_each_other_and_always_take_the_same_share_of_tokens() -> None:
    levels = [[select(task) for task in stage.tasks] for stage in member("ernie").stages]
    assert levels == [[Tokens(0.15)] * 2, [Units(Layer.PHRASE, rate=0.15)] * 2, [Units(Layer.ENTITY, rate=0.15)] * 2]
    assert [stage.length for stage in member("ernie").stages] == [128] * 3


def test_a_level_is_learned_from_text_and_from_conversations() -> None:
    for stage in member("ernie").stages:
        assert [[one.name for one in task.learns] for task in stage.tasks] == [["mlm", "next"], ["mlm", "reply"]]
        assert stage.shares == (0.843, 0.157)


def test_the_network_knows_pairs_and_speakers() -> None:
    trunk = member("ernie", "tiny").trunk
    assert (trunk.segments, trunk.activation, trunk.width) == (4, Activation.RELU, 128)


def test_forms() -> None:
    (stage,) = member("ernie:mixed", "tiny").stages
    assert all(isinstance(select(task), OneOf) for task in stage.tasks)
    text = member("ernie:text")
    assert not any(isinstance(task.examples, Dialogues) for task in text.tasks)
    assert [one.name for one in text.objectives] == ["mlm", "next"]
    for form in ("ernie:mixed", "ernie:text"):
        assert decode(encode(member(form)), Recipe) == member(form)
    with pytest.raises(RecipeError, match=r"ernie has no form 'mix'. It has: mixed, text."):
        member("ernie:mix")
    with pytest.raises(RecipeError, match=r"bert has no form 'trunk_of'. It has: none but itself."):
        member("bert:trunk_of")
