"""Budgets: what share of a run is over, in steps, tokens or hours."""

import pytest

from unmask.errors import RecipeError
from unmask.train.budget import Hours, Progress, Steps, Tokens


@pytest.mark.parametrize(
    ("budget", "told", "half"),
    [
        (Steps(1000), "1,000 steps", Progress(step=500, tokens=7, seconds=9.0)),
        (Tokens(4096), "4,096 tokens", Progress(step=3, tokens=2048, seconds=9.0)),
        (Hours(0.5), "0.5 hours", Progress(step=3, tokens=7, seconds=900.0)),
    ],
)
def test_each_budget_looks_at_its_own_measure(budget, told, half):
    assert budget.share(Progress()) == 0
    assert budget.share(half) == 0.5
    assert budget.told() == told


@pytest.mark.parametrize(
    ("make", "count"),
    [(Steps, 0), (Steps, -3), (Tokens, 0), (Hours, 0.0), (Hours, float("inf")), (Hours, float("nan"))],
)
def test_a_budget_of_nothing_is_refused(make, count):
    with pytest.raises(RecipeError, match="A budget needs"):
        make(count)
