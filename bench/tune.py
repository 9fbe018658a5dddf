"""How long an epoch takes under each policy: the first one, and those after it.

    python bench/tune.py                          a real-shaped task for BERT mini: 2,000 rows of 8 to 128 tokens
    python bench/tune.py --size small --rows 4000

What arrives: the shape of a task. What leaves: a table, with the speed of later epochs as a multiple of full tuning.
What never happens here: a score. The tokens and labels are drawn; time does not depend on them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from unmask.keys import Key, Lane, below
from unmask.nets.model import Model
from unmask.nets.sizes import SIZES
from unmask.nets.transformer import draw_weights
from unmask.nets.trunk import Trunk
from unmask.objectives.part import Learnable
from unmask.optimising import AdamW, Descent
from unmask.ragged import offsets
from unmask.records import Ints
from unmask.train.budget import Steps
from unmask.train.loop import train
from unmask.train.processes import Processes
from unmask.train.run import Run, choose_device, choose_micro, choose_precision
from unmask.train.training import Training
from unmask.tune.course import Labelled
from unmask.tune.encode import Encoded
from unmask.tune.exercise import Exercise, RowFacts
from unmask.tune.judge import Judge
from unmask.tune.policies.adapter import Adapter
from unmask.tune.policies.frozen import Frozen
from unmask.tune.policies.layers import Layers
from unmask.tune.policies.top import Top
from unmask.tune.policy import Full, Policy, paces_of, trained
from unmask.tune.remember import remembered
from unmask.tune.start import Origin, new_learner

VOCABULARY, LENGTH, BATCH, SHORTEST = 8000, 128, 32, 8
POLICIES: tuple[Policy, ...] = (Full(), Frozen(cache=False), Frozen(), Layers(), Adapter(), Top(1))


@dataclass(frozen=True)
class Times:
    """Seconds of the first epoch, the reading of a trunk at rest counted in, and of a later one."""

    first: float
    later: float
    moving: int


def main() -> None:
    wish = _wishes()
    model, course = _model(wish.size), _course(wish.rows)
    print(
        f"{wish.size}: {wish.rows:,} rows, {len(course.learned.rows.ids):,} tokens, {torch.get_num_threads()} threads"
    )
    print(f"{'policy':<24}{'trained':>12}{'first epoch':>14}{'later':>12}{'faster than full':>18}")
    full = float("nan")
    for policy in POLICIES:
        times = _time(policy, model, course, wish.epochs)
        full = times.later if isinstance(policy, Full) else full
        told = f"{policy.name}{'' if getattr(policy, 'cache', True) else ', nothing kept'}"
        print(
            f"{told:<24}{times.moving:>12,}{times.first:>12.2f} s{times.later:>10.3f} s{full / times.later:>16.1f} x",
            flush=True,
        )


def _time(policy: Policy, model: Model, course: Labelled, epochs: int) -> Times:
    learner = new_learner(model, (course.objective,), 0, Origin.PRETRAINED)
    policy.equip(learner, 0)
    device = choose_device()
    run = Run(
        device=device, precision=choose_precision(device), micro=choose_micro(device), keep=1, trials=1, save_minutes=60
    )
    steps, ends = course.steps(1), []
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with remembered(course, learner, policy.remembers, run, Path(folder)) as known:
            training = Training(
                learner=learner,
                course=known,
                descent=Descent(AdamW(1e-4, correct_bias=True), policy.schedule),
                budget=Steps(steps * epochs),
                seed=0,
                paces=paces_of(policy, learner),
            )
            hear = lambda line: ends.append(time.perf_counter()) if line["kind"] == "step" else None  # noqa: E731
            train(training, run, Processes(0, 1, device), Path(folder), [hear])
    later = (ends[-1] - ends[steps - 1]) / (epochs - 1)
    return Times(ends[steps - 1] - began, later, trained(learner, policy).moving)


def _model(size: str) -> Model:
    shape = SIZES[size]
    trunk = Trunk(depth=shape.depth, width=shape.width, heads=shape.heads, inner=shape.inner)
    model = Model(trunk, VOCABULARY, LENGTH)
    draw_weights(model, trunk.spread, torch.Generator().manual_seed(0))
    return model


def _course(rows: int) -> Labelled:
    """Rows of every length alike, two classes, a tenth as many rows to be judged by."""
    objective: Learnable = Judge(2)
    return Labelled(_exercise(rows, "learned"), _exercise(rows // 10, "judged"), objective, BATCH, LENGTH, 0)


def _exercise(rows: int, name: str) -> Exercise:
    key = Key.of(0, name)
    lengths: Ints = SHORTEST + below(key.draws(Lane.LENGTH, rows), LENGTH - SHORTEST + 1)
    begin = offsets(lengths)
    ids = below(key.draws(Lane.TOKEN, int(begin[-1])), VOCABULARY).astype(np.int32)
    encoded = Encoded(ids, np.zeros(len(ids), dtype=np.uint8), begin, 0)
    return Exercise(encoded, RowFacts("judge", below(key.draws(Lane.PLAN, rows), 2)))


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="mini", choices=sorted(SIZES))
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
