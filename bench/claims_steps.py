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

from unmask.api.pretrain import RunOptions
from unmask.api.pretrain_setup import PretrainRequest, PretrainSetup
from unmask.train.cost_estimate import estimate_cost
from unmask.train.distributed import DistContext

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
    parts = PretrainSetup(
        PretrainRequest(
            member=own,
            size=wish.size,
            changes=(*(one.removeprefix("--set=") for one in changes), f"stages.*.length={wish.length}"),
            batch_size=wish.batch,
            lr=None,
            short=True,
            data=wish.data,
            init_from=None,
            seed=0,
            heldout_fraction=wish.held_out,
            steps=STEPS,
            tokens=None,
            hours=None,
            flops=None,
        )
    )
    how = RunOptions(
        out=Path(),
        device="auto",
        precision="auto",
        microbatch_tokens=0,
        compile=False,
        cuda_graphs="auto",
        num_evals=1,
        keep_checkpoints=1,
        save_every_minutes=1.0,
        tensorboard=False,
        dry_run=True,
    ).for_this_machine()
    found = estimate_cost(parts.training_spec, how, DistContext(0, 1, how.device), parts.cost_probes()[:1])
    gc.collect()
    return 1000 * found.seconds / found.steps
