"""The first losses of every member that can be trained, on a few sentences: what a golden curve is made of."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from law_nets import few, learning_by_heart, lines_of, trained_members, training

from unmask.tasks.recipe import Recipe

HERE = Path(__file__).parent.parent / "golden"
CURVES = HERE / "curves.json"
STEPS = 160
FOR_EACH = 200
"""Steps for each of several tasks: one network learns them in turn, and each disturbs the others a little."""
SHOWN = (1, 2, 4, 8, 16, 24, 32)
"""Later steps are left out: there a last digit that differs may have grown into a first."""
TOLERANCE = 0.01
"""Between machines, as a part of the loss: sums are taken in another order, and every step multiplies what differs."""


def lines(recipe: Recipe) -> list[dict[str, Any]]:
    """A whole short training of a member, step by step."""
    made = learning_by_heart(recipe)
    steps = STEPS if len(made.tasks) == 1 else FOR_EACH * len(made.tasks)
    with TemporaryDirectory() as folder:
        return lines_of(training(made, steps, corpus=few()), Path(folder))


def shown(found: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The losses that are kept, by step."""
    return {str(step): {name: round(loss, 4) for name, loss in found[step - 1]["loss"].items()} for step in SHOWN}


def curves() -> dict[str, dict[str, dict[str, float]]]:
    """The curve of every member that can be trained."""
    return {recipe.name: shown(lines(recipe)) for recipe in trained_members()}
