"""Schedules against their formulas, written out, and exact at their ends."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import RecipeError
from unmask.optimising import (
    AdamW,
    Constant,
    Cosine,
    Descent,
    InverseRoot,
    Linear,
    Origin,
    Schedule,
    Slanted,
    WarmupShare,
    WarmupSteps,
)
from unmask.train.schedule import at_step, at_time, multiplier

TOTAL, WARM = 1000, 100
FALLING = [
    Linear(WarmupSteps(WARM)),
    Linear(WarmupShare(0.1), end=0.1),
    Linear(WarmupSteps(WARM), origin=Origin.START),
    Cosine(WarmupSteps(WARM)),
    Cosine(WarmupShare(0.1), end=0.01),
    InverseRoot(WarmupSteps(WARM)),
    InverseRoot(WarmupShare(0.1)),
    Constant(WarmupSteps(WARM)),
    Slanted(),
]


def linear(step: int) -> float:
    return step / WARM if step < WARM else (TOTAL - step) / (TOTAL - WARM)


def bert_as_released(step: int) -> float:
    return step / WARM if step < WARM else 1 - step / TOTAL


def cosine(step: int) -> float:
    return step / WARM if step < WARM else 0.5 * (1 + math.cos(math.pi * (step - WARM) / (TOTAL - WARM)))


def noam(step: int) -> float:
    return math.sqrt(WARM) * min(step * WARM**-1.5, step**-0.5 if step else 0.0)


def ulmfit(step: int, fraction: float = 0.1, ratio: float = 32) -> float:
    cut = math.floor(TOTAL * fraction)
    p = step / cut if step < cut else 1 - (step - cut) / (cut * (1 / fraction - 1))
    return (1 + p * (ratio - 1)) / ratio


@pytest.mark.parametrize(
    ("schedule", "formula"),
    [
        (Linear(WarmupSteps(WARM)), linear),
        (Linear(WarmupShare(WARM / TOTAL)), linear),
        (Linear(WarmupSteps(WARM), origin=Origin.START), bert_as_released),
        (Cosine(WarmupSteps(WARM)), cosine),
        (Cosine(WarmupSteps(WARM), end=0.25), lambda step: cosine(step) if step < WARM else 0.25 + 0.75 * cosine(step)),
        (InverseRoot(WarmupSteps(WARM)), noam),
        (InverseRoot(WarmupShare(WARM / TOTAL)), noam),
        (Constant(WarmupSteps(WARM)), lambda step: min(step / WARM, 1.0)),
        (Slanted(), ulmfit),
    ],
)
def test_every_step_follows_the_formula(schedule, formula):
    found = [at_step(schedule, step, TOTAL) for step in range(TOTAL + 1)]
    assert found == pytest.approx([formula(step) for step in range(TOTAL + 1)], abs=1e-12)


@pytest.mark.parametrize("fall", [Linear(WarmupSteps(WARM)), Cosine(WarmupSteps(WARM)), Linear(WarmupShare(0.1))])
def test_the_ends_are_exact(fall):
    assert [at_step(fall, step, TOTAL) for step in (0, WARM, TOTAL)] == [0.0, 1.0, 0.0]


def test_slanted_triangle_starts_and_ends_at_the_low_rate():
    assert [at_step(Slanted(), step, TOTAL) for step in (0, WARM, TOTAL)] == [1 / 32, 1.0, 1 / 32]
    assert at_step(Slanted(), 15, 15) == 1 / 32, "short runs keep a positive rate to the end"


def test_without_warmup_the_first_step_takes_the_full_rate():
    assert [at_step(schedule, 0, TOTAL) for schedule in (Linear(), Cosine(), Constant())] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("schedule", FALLING)
def test_time_at_an_even_pace_gives_the_rates_of_steps(schedule):
    for step in range(0, TOTAL + 1, 7):
        assert at_time(schedule, step, 0.36 * step, 0.36 * TOTAL) == pytest.approx(at_step(schedule, step, TOTAL))


def test_time_bound_rate_ends_when_the_time_does_however_many_steps_there_were():
    for steps in (150, 1000, 70_000):
        assert at_time(Linear(WarmupSteps(WARM)), steps, 600.0, 600.0) == 0.0
    half = at_time(Linear(WarmupShare(0.1)), 3, 330.0, 600.0)
    assert half == pytest.approx(0.5), "half of the time after the warm-up is over, whatever the step"


def test_time_over_the_budget_stays_at_the_end():
    assert at_time(Linear(WarmupShare(0.1), end=0.1), 900, 700.0, 600.0) == 0.1


def test_a_warmup_longer_than_the_run_only_rises():
    rates = [at_step(Linear(WarmupSteps(50)), step, 50) for step in range(51)]
    assert rates == pytest.approx([step / 50 for step in range(51)])


@given(st.sampled_from(FALLING), st.integers(0, 10**7), st.floats(0, 1))
def test_a_multiplier_never_leaves_its_range(schedule: Schedule, step, share):
    assert 0 <= multiplier(schedule, step, share) <= 1


@pytest.mark.parametrize("schedule", FALLING)
def test_after_the_peak_the_rate_never_rises(schedule):
    rates = [at_step(schedule, step, TOTAL) for step in range(TOTAL + 1)]
    peak = rates.index(max(rates))
    assert peak in (WARM - 1, WARM)
    assert all(later <= earlier + 1e-15 for earlier, later in zip(rates[peak:], rates[peak + 1 :], strict=False))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: WarmupSteps(-1),
        lambda: WarmupShare(1.0),
        lambda: WarmupShare(float("nan")),
        lambda: Linear(end=1.5),
        lambda: Cosine(end=-0.1),
        lambda: InverseRoot(WarmupSteps(0)),
        lambda: InverseRoot(WarmupShare(0.0)),
        lambda: Slanted(rise=0.0),
        lambda: Slanted(ratio=0.5),
        lambda: Descent(AdamW(1e-4), Linear(), clip=-1.0),
    ],
)
def test_a_schedule_that_cannot_work_is_refused_with_a_sentence(wrong):
    with pytest.raises(RecipeError, match=r"needs .*; found .*\."):
        wrong()
