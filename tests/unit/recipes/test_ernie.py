"""ERNIE as published, and its two forms."""

from __future__ import annotations

import pytest

from unmask.config.network import Activation
from unmask.core.codec import decode, encode
from unmask.core.errors import RecipeError
from unmask.core.records import UnitKind
from unmask.data.corrupt.masking import MaskTokens, OneOfSelectors, RandomTokens, WholeUnits
from unmask.data.input_formats.dialogues import Dialogues
from unmask.members import member
from unmask.tasks.recipe import Recipe, Task


def select(task: Task) -> object:
    assert isinstance(task.corruption, MaskTokens)
    return task.corruption.select


def test_levels_follow_each_other_and_always_take_the_same_share_of_tokens() -> None:
    levels = [[select(task) for task in stage.tasks] for stage in member("ernie").stages]
    assert levels == [
        [RandomTokens(0.15)] * 2,
        [WholeUnits(UnitKind.PHRASE, rate=0.15)] * 2,
        [WholeUnits(UnitKind.ENTITY, rate=0.15)] * 2,
    ]
    assert [stage.max_length for stage in member("ernie").stages] == [128] * 3


def test_a_level_is_learned_from_text_and_from_conversations() -> None:
    for stage in member("ernie").stages:
        assert [[one.name for one in task.objectives] for task in stage.tasks] == [["mlm", "next"], ["mlm", "reply"]]
        assert stage.task_weights == (0.843, 0.157)


def test_the_network_knows_pairs_and_speakers() -> None:
    trunk = member("ernie", "tiny").network
    assert (trunk.num_segments, trunk.activation, trunk.width) == (4, Activation.RELU, 128)


def test_forms() -> None:
    (stage,) = member("ernie:mixed", "tiny").stages
    assert all(isinstance(select(task), OneOfSelectors) for task in stage.tasks)
    text = member("ernie:text")
    assert not any(isinstance(task.examples, Dialogues) for task in text.tasks)
    assert [one.name for one in text.objectives] == ["mlm", "next"]
    for form in ("ernie:mixed", "ernie:text"):
        assert decode(encode(member(form)), Recipe) == member(form)
    with pytest.raises(RecipeError, match=r"ernie has no form 'mix'. It has: mixed, text."):
        member("ernie:mix")
    with pytest.raises(RecipeError, match=r"bert has no form 'trunk_of'. It has: none but itself."):
        member("bert:trunk_of")
