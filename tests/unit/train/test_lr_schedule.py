"""Schedules against their formulas, written out, and exact at their ends."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.config.optim import (
    AdamW,
    Constant,
    Cosine,
    DecayFrom,
    InverseSqrt,
    Linear,
    OptimConfig,
    Schedule,
    SlantedTriangular,
    WarmupFraction,
    WarmupSteps,
)
from unmask.core.errors import RecipeError
from unmask.train.schedule import at_step, at_time, lr_multiplier

TOTAL, WARM = 1000, 100
FALLING = [
    Linear(WarmupSteps(WARM)),
    Linear(WarmupFraction(0.1), end_factor=0.1),
    Linear(WarmupSteps(WARM), decay_from=DecayFrom.START),
    Cosine(WarmupSteps(WARM)),
    Cosine(WarmupFraction(0.1), end_factor=0.01),
    InverseSqrt(WarmupSteps(WARM)),
    InverseSqrt(WarmupFraction(0.1)),
    Constant(WarmupSteps(WARM)),
    SlantedTriangular(),
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
        (Linear(WarmupFraction(WARM / TOTAL)), linear),
        (Linear(WarmupSteps(WARM), decay_from=DecayFrom.START), bert_as_released),
        (Cosine(WarmupSteps(WARM)), cosine),
        (
            Cosine(WarmupSteps(WARM), end_factor=0.25),
            lambda step: cosine(step) if step < WARM else 0.25 + 0.75 * cosine(step),
        ),
        (InverseSqrt(WarmupSteps(WARM)), noam),
        (InverseSqrt(WarmupFraction(WARM / TOTAL)), noam),
        (Constant(WarmupSteps(WARM)), lambda step: min(step / WARM, 1.0)),
        (SlantedTriangular(), ulmfit),
    ],
)
def test_every_step_follows_the_formula(schedule, formula):
    found = [at_step(schedule, step, TOTAL) for step in range(TOTAL + 1)]
    assert found == pytest.approx([formula(step) for step in range(TOTAL + 1)], abs=1e-12)


@pytest.mark.parametrize("fall", [Linear(WarmupSteps(WARM)), Cosine(WarmupSteps(WARM)), Linear(WarmupFraction(0.1))])
def test_the_ends_are_exact(fall):
    assert [at_step(fall, step, TOTAL) for step in (0, WARM, TOTAL)] == [0.0, 1.0, 0.0]


def test_slanted_triangle_starts_and_ends_at_the_low_rate():
    assert [at_step(SlantedTriangular(), step, TOTAL) for step in (0, WARM, TOTAL)] == [1 / 32, 1.0, 1 / 32]
    assert at_step(SlantedTriangular(), 15, 15) == 1 / 32, "short runs keep a positive rate to the end"


def test_without_warmup_the_first_step_takes_the_full_rate():
    assert [at_step(schedule, 0, TOTAL) for schedule in (Linear(), Cosine(), Constant())] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("schedule", FALLING)
def test_time_at_an_even_pace_gives_the_rates_of_steps(schedule):
    for step in range(0, TOTAL + 1, 7):
        assert at_time(schedule, step, 0.36 * step, 0.36 * TOTAL) == pytest.approx(at_step(schedule, step, TOTAL))


def test_time_bound_rate_ends_when_the_time_does_however_many_steps_there_were():
    for steps in (150, 1000, 70_000):
        assert at_time(Linear(WarmupSteps(WARM)), steps, 600.0, 600.0) == 0.0
    half = at_time(Linear(WarmupFraction(0.1)), 3, 330.0, 600.0)
    assert half == pytest.approx(0.5), "half of the time after the warm-up is over, whatever the step"


def test_time_over_the_budget_stays_at_the_end():
    assert at_time(Linear(WarmupFraction(0.1), end_factor=0.1), 900, 700.0, 600.0) == 0.1


def test_a_warmup_longer_than_the_run_only_rises():
    rates = [at_step(Linear(WarmupSteps(50)), step, 50) for step in range(51)]
    assert rates == pytest.approx([step / 50 for step in range(51)])


@given(st.sampled_from(FALLING), st.integers(0, 10**7), st.floats(0, 1))
def test_a_multiplier_never_leaves_its_range(schedule: Schedule, step, share):
    assert 0 <= lr_multiplier(schedule, step, share) <= 1


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
        lambda: WarmupFraction(1.0),
        lambda: WarmupFraction(float("nan")),
        lambda: Linear(end_factor=1.5),
        lambda: Cosine(end_factor=-0.1),
        lambda: InverseSqrt(WarmupSteps(0)),
        lambda: InverseSqrt(WarmupFraction(0.0)),
        lambda: SlantedTriangular(cut_frac=0.0),
        lambda: SlantedTriangular(ratio=0.5),
        lambda: OptimConfig(AdamW(1e-4), Linear(), max_grad_norm=-1.0),
    ],
)
def test_a_schedule_that_cannot_work_is_refused_with_a_sentence(wrong):
    with pytest.raises(RecipeError, match=r"needs .*; found .*\."):
        wrong()
