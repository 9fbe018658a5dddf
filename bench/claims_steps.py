"""How long a step of every arm takes on a machine that does nothing else, in turns.

What arrives: arms as words for `unmask pretrain`. What leaves: milliseconds a step for every arm and round, and the
same beside the first arm.
What never happens here: learning, or two arms at the same time.
"""

from __future__ import annotations

import argparse
import gc
import shlex
from pathlib import Path

from unmask.cli.pretrain_parts import Pretraining, Wish
from unmask.cli.pretraining import Logistics
from unmask.train.estimate import estimate
from unmask.train.processes import Processes

ROUNDS = 5
STEPS = 100_000
"""So many that the trials between them take no time."""


def step_times(wish: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Rounds over all arms, so that a machine which grows slower does so for all of them."""
    arms = dict(arm.split("=", 1) for arm in wish.arm)
    times: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(ROUNDS + 1):
        for name, words in arms.items():
            spent = _step(wish, words)
            if number:  # the first round loads and warms up
                times[name].append(spent)
    first = next(iter(arms))
    beside = {
        name: [mine / other for mine, other in zip(found, times[first], strict=True)] for name, found in times.items()
    }
    return {"ms a step, alone": times, f"step beside {first}": beside}


def _step(wish: argparse.Namespace, words: str) -> float:
    own, *changes = shlex.split(words)
    parts = Pretraining(
        Wish(
            member=own,
            size=wish.size,
            changes=(*(one.removeprefix("--set=") for one in changes), f"stages.*.length={wish.length}"),
            batch=wish.batch,
            rate=None,
            short=True,
            data=wish.data,
            start=None,
            seed=0,
            held_out=wish.held_out,
            steps=STEPS,
            tokens=None,
            hours=None,
            flops=None,
        )
    )
    how = Logistics(
        out=Path(),
        device="auto",
        precision="auto",
        micro=0,
        compile=False,
        graphs="auto",
        trials=1,
        keep=1,
        save_minutes=1.0,
        tensorboard=False,
        dry_run=True,
    ).here()
    found = estimate(parts.training, how, Processes(0, 1, how.device), parts.probes()[:1])
    gc.collect()
    return 1000 * found.seconds / found.steps
