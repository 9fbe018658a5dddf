"""Law 11, Learning: every member learns a tiny corpus by heart, and follows its golden curve on the way.

A member whose objectives have no head yet is not trained; `law_nets.trained_members` leaves it out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from law_nets import trained_members

from unmask.tasks.recipe import Recipe

sys.path.append(str(Path(__file__).parent.parent / "golden"))
from golden_curves import CURVES, TOLERANCE, lines, shown

MEMBERS = trained_members()
LAST = 8
"""Steps over which the end of a run is averaged; of several tasks, those that ask for an objective."""
RENEW = "If this is meant, write the curves anew with `python tests/golden/renew.py` and read the difference."


def learned(found: list[dict[str, Any]], number: str, objective: str) -> float:
    return fmean(line[number][objective] for line in asking(found, objective)[-LAST:])


def asking(found: list[dict[str, Any]], objective: str) -> list[dict[str, Any]]:
    return [line for line in found if objective in line["loss"]]


@pytest.mark.parametrize("recipe", MEMBERS, ids=lambda recipe: recipe.name)
def test_a_member_learns_by_heart_and_follows_its_golden_curve(recipe: Recipe) -> None:
    found = lines(recipe)
    golden = json.loads(CURVES.read_text(encoding="utf-8")).get(recipe.name)
    assert golden, f"{recipe.name} has no golden curve. {RENEW}"
    for step, losses in shown(found).items():
        assert losses == pytest.approx(golden[step], rel=TOLERANCE), f"step {step}. {RENEW}"
    for objective in recipe.objectives:
        assert learned(found, "accuracy", objective.name) > 0.85
        first = asking(found, objective.name)[0]["loss"][objective.name]
        assert learned(found, "loss", objective.name) < first / 6


def test_no_curve_is_left_without_a_member() -> None:
    assert set(json.loads(CURVES.read_text(encoding="utf-8"))) == {recipe.name for recipe in MEMBERS}
