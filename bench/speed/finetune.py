"""How long an epoch takes under each policy: the first one, and those after it.

    python -m bench.speed.finetune                          a real-shaped task for BERT mini: 2,000 rows of 8 to 128 tokens
    python -m bench.speed.finetune --size small --rows 4000

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

from unmask.config.network import TransformerConfig
from unmask.config.optim import AdamW, OptimConfig
from unmask.config.sizes import SIZES
from unmask.core.ragged import offsets
from unmask.core.records import Ints, RowClass
from unmask.core.rng import DrawPurpose, Key, randint
from unmask.finetuning.data.encode import EncodedRows
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowTargets
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.feature_cache import with_feature_cache
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.methods.adapter import Adapter
from unmask.finetuning.methods.frozen import FrozenEncoder, ScalarMixing
from unmask.finetuning.methods.protocol import FullFineTuning, Method, count_trained, param_lrs
from unmask.finetuning.methods.unfreezing import TopLayers
from unmask.nets.encoder import init_weights
from unmask.nets.model import EncoderWithHeads
from unmask.objectives.protocol import Objective
from unmask.objectives.row_tasks import Classification
from unmask.train.build_step import TrainingSpec
from unmask.train.loop import train
from unmask.train.run_config import DistContext, RunConfig, pick_device, pick_microbatch, pick_precision
from unmask.train.schedule import StepBudget

VOCABULARY, LENGTH, BATCH, SHORTEST = 8000, 128, 32, 8
POLICIES: tuple[Method, ...] = (
    FullFineTuning(),
    FrozenEncoder(cache_features=False),
    FrozenEncoder(),
    ScalarMixing(),
    Adapter(),
    TopLayers(1),
)


@dataclass(frozen=True)
class Times:
    """Seconds of the first epoch, the reading of a trunk at rest counted in, and of a later one."""

    first: float
    later: float
    moving: int


def main() -> None:
    wish = _wishes()
    model, course = _model(wish.size), _course(wish.rows)
    print(f"{wish.size}: {wish.rows:,} rows, {len(course.train.rows.ids):,} tokens, {torch.get_num_threads()} threads")
    print(f"{'policy':<24}{'trained':>12}{'first epoch':>14}{'later':>12}{'faster than full':>18}")
    full = float("nan")
    for policy in POLICIES:
        times = _time(policy, model, course, wish.epochs)
        full = times.later if isinstance(policy, FullFineTuning) else full
        told = f"{policy.name}{'' if getattr(policy, 'cache', True) else ', nothing kept'}"
        print(
            f"{told:<24}{times.moving:>12,}{times.first:>12.2f} s{times.later:>10.3f} s{full / times.later:>16.1f} x",
            flush=True,
        )


def _time(policy: Method, model: EncoderWithHeads, course: EpochBatches, epochs: int) -> Times:
    learner = build_model(model, (course.objective,), 0, StartFrom.PRETRAINED)
    policy.add_modules(learner, 0)
    device = pick_device()
    run = RunConfig(
        device=device,
        precision=pick_precision(device),
        microbatch_tokens=pick_microbatch(device),
        keep_checkpoints=1,
        num_evals=1,
        save_every_minutes=60,
    )
    steps, ends = course.num_steps(1), []
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with with_feature_cache(course, learner, policy.caches, run, Path(folder)) as known:
            training = TrainingSpec(
                model=learner,
                source=known,
                optim=OptimConfig(AdamW(1e-4, bias_correction=True), policy.schedule),
                budget=StepBudget(steps * epochs),
                seed=0,
                param_lr=param_lrs(policy, learner),
            )
            hear = lambda line: ends.append(time.perf_counter()) if line["kind"] == "step" else None  # noqa: E731
            train(training, run, DistContext(0, 1, device), Path(folder), [hear])
    later = (ends[-1] - ends[steps - 1]) / (epochs - 1)
    return Times(ends[steps - 1] - began, later, count_trained(learner, policy).num_trained)


def _model(size: str) -> EncoderWithHeads:
    shape = SIZES[size]
    trunk = TransformerConfig(depth=shape.depth, width=shape.width, heads=shape.heads, ffn_width=shape.ffn_width)
    model = EncoderWithHeads(trunk, VOCABULARY, LENGTH)
    init_weights(model, trunk.init_std, torch.Generator().manual_seed(0))
    return model


def _course(rows: int) -> EpochBatches:
    """Rows of every length alike, two classes, a tenth as many rows to be judged by."""
    objective: Objective = Classification(2)
    return EpochBatches(_exercise(rows, "learned"), _exercise(rows // 10, "judged"), objective, BATCH, LENGTH, 0)


def _exercise(rows: int, name: str) -> EncodedDataset:
    key = Key.of(0, name)
    lengths: Ints = SHORTEST + randint(key.bits(DrawPurpose.LENGTH, rows), LENGTH - SHORTEST + 1)
    begin = offsets(lengths)
    ids = randint(key.bits(DrawPurpose.TOKEN, int(begin[-1])), VOCABULARY).astype(np.int32)
    encoded = EncodedRows(ids, np.zeros(len(ids), dtype=np.uint8), begin, 0)
    return EncodedDataset(encoded, RowTargets(RowClass("judge", randint(key.bits(DrawPurpose.PLAN, rows), 2))))


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="mini", choices=sorted(SIZES))
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
