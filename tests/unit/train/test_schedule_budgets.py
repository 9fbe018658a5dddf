"""Budgets: what share of a run is over, in steps, tokens or hours."""

import pytest

from unmask.core.errors import RecipeError
from unmask.train.schedule import RunProgress, StepBudget, TimeBudget, TokenBudget


@pytest.mark.parametrize(
    ("budget", "told", "half"),
    [
        (StepBudget(1000), "1,000 steps", RunProgress(step=500, tokens=7, seconds=9.0)),
        (TokenBudget(4096), "4,096 tokens", RunProgress(step=3, tokens=2048, seconds=9.0)),
        (TimeBudget(0.5), "0.5 hours", RunProgress(step=3, tokens=7, seconds=900.0)),
    ],
)
def test_each_budget_looks_at_its_own_measure(budget, told, half):
    assert budget.fraction_used(RunProgress()) == 0
    assert budget.fraction_used(half) == 0.5
    assert budget.text() == told


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (StepBudget, 0),
        (StepBudget, -3),
        (TokenBudget, 0),
        (TimeBudget, 0.0),
        (TimeBudget, float("inf")),
        (TimeBudget, float("nan")),
    ],
)
def test_a_budget_of_nothing_is_refused(make, count):
    with pytest.raises(RecipeError, match="A budget needs"):
        make(count)
