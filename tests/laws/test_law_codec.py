"""Law 9, Codec: a recipe survives JSON. (That shipped fingerprints are golden is held in tests/golden.)"""

from __future__ import annotations

import json

import pytest
from law_subjects import Subject, subjects

from unmask.core.codec import decode, dumps, encode, fingerprint
from unmask.members import members
from unmask.tasks.recipe import Recipe, Task

MEMBERS = members()


@pytest.mark.parametrize("recipe", MEMBERS, ids=lambda recipe: recipe.name)
def test_a_member_survives_json(recipe: Recipe) -> None:
    back = decode(json.loads(dumps(recipe)), Recipe)
    assert back == recipe
    assert encode(back) == encode(recipe)
    assert dumps(back) == dumps(recipe)
    assert fingerprint(back) == fingerprint(recipe)


@pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)
def test_a_task_survives_json(subject: Subject) -> None:
    back = decode(json.loads(dumps(subject.task)), Task)
    assert back == subject.task
    assert fingerprint(back) == fingerprint(subject.task)


def test_no_two_members_share_a_fingerprint() -> None:
    assert len({fingerprint(recipe) for recipe in MEMBERS}) == len(MEMBERS)
