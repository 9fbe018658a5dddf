"""Time of a training step of each arm, measured in turns on an otherwise idle machine."""

from __future__ import annotations

import gc
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from unmask.api.pretrain import RunOptions
from unmask.api.pretrain_setup import PretrainRequest, PretrainSetup
from unmask.train.cost_estimate import estimate_cost
from unmask.train.run_config import DistContext

NUM_ROUNDS = 5
_BUDGET_STEPS = 100_000
"""A budget so long that its evaluations take no measurable share of the time."""


@dataclass(frozen=True)
class StepTiming:
    """What all timed steps have in common."""

    data: Path
    size: str
    max_length: int
    batch_size: int
    heldout_fraction: float

    def seconds_per_step(self, args: str) -> float:
        """The time of one step of an arm."""
        member, *changes = shlex.split(args)
        setup = PretrainSetup(
            PretrainRequest(
                member=member,
                size=self.size,
                changes=(*(one.removeprefix("--set=") for one in changes), f"stages.*.max_length={self.max_length}"),
                batch_size=self.batch_size,
                preset="short",
                data=self.data,
                heldout_fraction=self.heldout_fraction,
                steps=_BUDGET_STEPS,
            )
        )
        options = RunOptions(
            out=Path(),
            num_evals=1,
            keep_checkpoints=1,
            dry_run=True,
        ).for_this_machine(setup.recipe)
        context = DistContext(0, 1, options.device)
        found = estimate_cost(setup.training_spec, options, context, setup.cost_probes()[:1])
        gc.collect()
        return found.seconds / found.steps


def step_times(timing: StepTiming, arms: Mapping[str, str]) -> dict[str, dict[str, list[float]]]:
    """Milliseconds per step of every arm and round, and the ratio to the first arm.

    Each round times every arm once, so that a change of the machine's speed affects all arms alike.
    """
    times: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(NUM_ROUNDS + 1):
        for name, args in arms.items():
            seconds = timing.seconds_per_step(args)
            if number:  # the first round is a warm-up
                times[name].append(1000 * seconds)
    first = next(iter(arms))
    ratios = {name: [a / b for a, b in zip(found, times[first], strict=True)] for name, found in times.items()}
    return {"ms per step, alone": times, f"step time / {first}": ratios}
