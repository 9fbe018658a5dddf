"""Pre-training on one GPU, side by side with `transformers`: tokens a second, time and memory of a step, and MFU.

    python bench/pretrain_gpu.py --out gpu.json
    python bench/pretrain_gpu.py --device cpu --sizes tiny --lengths 128 --rows 2 --steps 1 --no-compile     (a check)

What arrives: a prepared corpus (`--data`), or nothing: then rows are full and their ids uniformly random, because only
time is measured here. What leaves: one table, and the same as JSON.
What never happens here: a difference in the work. Both sides begin with the same weights and see the same masked rows,
in bfloat16 (autocast), with dropout 0.1, fused AdamW and clipping; theirs with SDPA. Both run as they are and compiled;
with attention dropout 0.1 (BERT) and 0 (as recent recipes do), which lets ours use variable-length flash attention.

MFU counts what a token needs, forward and backward, with logits at the chosen positions only: for a network of depth L,
width d, inner width f, rows of s and vocabulary V, L (24 d² + 12 d f) + 12 L s d + 6 · 0.15 (d² + d V) operations. It
is given against `--peak`. Both sides are measured by the same count, so what theirs computes beyond it is not credited.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from both_sides import How, Ours, Theirs
from torch import Tensor

from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.select import Tokens
from unmask.examples.packed import Join, Packed
from unmask.examples.visits import EveryVisit
from unmask.feed import Feed, padded
from unmask.nets.sizes import SIZES
from unmask.objectives.mlm import MLM
from unmask.ragged import within
from unmask.records import Cloze, Inputs, Instance, Spans
from unmask.shards.corpus import Corpus
from unmask.tasks import Task
from unmask.views import DOCUMENTS

PREDICTED = 0.15
DIFFERENT = 4
"""Batches that are taken in turns."""


@dataclass(frozen=True)
class Found:
    """What was measured of one side."""

    size: str
    rows: str
    attention_dropout: float
    side: str
    compiled: bool
    tokens_per_second: float
    ms_per_step: float
    gib: float
    mfu: float
    loss: float
    ratio: float = 1.0
    """Of tokens a second, to those of `transformers` computed in the same way."""

    def line(self) -> str:
        """One line of the table."""
        how = "compiled" if self.compiled else "eager"
        return (
            f"{self.size:>6} {self.rows:>8} {self.attention_dropout:>5.1f}  {self.side:12} {how:8} "
            f"{self.tokens_per_second:>10,.0f} {self.ms_per_step:>8.1f} {self.gib:>6.1f} {100 * self.mfu:>6.1f} "
            f"{self.ratio:>6.2f}x {self.loss:>7.3f}"
        )


@dataclass(frozen=True)
class Timed:
    """Seconds of a step, and the loss of the last one."""

    seconds: float
    loss: float
    gib: float


def main() -> None:
    wish = _wishes()
    warnings.filterwarnings("ignore")
    torch.set_float32_matmul_precision("high")
    device = torch.device(wish.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}; {'random ids in full rows' if not wish.data else wish.data}")
    print(
        f"{'size':>6} {'rows':>8} {'att.d':>5}  {'side':12} {'how':8} {'tokens/s':>10} {'ms/step':>8} {'GiB':>6} "
        f"{'MFU %':>6} {'ratio':>7} {'loss':>7}"
    )
    found: list[Found] = []
    for size in wish.sizes:
        for length in wish.lengths:
            for dropout in wish.attention_dropout:
                how = How(size, wish.vocabulary, device, half=True, attention_dropout=dropout)
                found += compare(how, length, wish)
    if wish.out:
        about = {"device": name, "torch": torch.__version__, "peak": wish.peak, "data": str(wish.data or "random")}
        wish.out.write_text(json.dumps(about | {"found": [asdict(one) for one in found]}, indent=1) + "\n", "utf-8")


def compare(how: How, length: int, wish: argparse.Namespace) -> list[Found]:
    """Both sides, eager and compiled, one after the other: each has the device for itself."""
    count = wish.rows or wish.tokens // length
    instances = list(_instances(wish.data, how.vocabulary, count, length))
    tokens = statistics.mean(len(one.inputs.ids) for one in instances)
    held: list[Found] = []
    for compiled in (False, True) if wish.compile else (False,):
        pair = []
        for side, measure in (("transformers", _time_theirs), ("ours", _time_ours)):
            _clean(how.device)
            timed = measure(replace(how, compiled=compiled), instances, length, wish.steps)
            speed = tokens / timed.seconds
            mfu = speed * operations(how, length) / wish.peak / 1e12
            mine = (side, compiled, speed, 1000 * timed.seconds, timed.gib, mfu, timed.loss)
            pair.append(Found(how.size, f"{count}x{length}", how.attention_dropout, *mine))
            pair[-1] = replace(pair[-1], ratio=pair[-1].tokens_per_second / pair[0].tokens_per_second)
            print(pair[-1].line(), flush=True)
        held += pair
    return held


def operations(how: How, length: int) -> float:
    """Floating-point operations that learning from one token takes, forward and backward."""
    size = SIZES[how.size]
    linear = size.depth * (24 * size.width**2 + 12 * size.width * size.inner)
    attention = 12 * size.depth * length * size.width
    return linear + attention + 6 * PREDICTED * (size.width**2 + size.width * how.vocabulary)


def _time_ours(how: How, instances: list[Instance], length: int, steps: int) -> Timed:
    ours = Ours.of(how)
    return _timed(lambda turn: ours.step(ours.load(instances[turn % len(instances)], length)), how.device, steps)


def _time_theirs(how: How, instances: list[Instance], length: int, steps: int) -> Timed:
    theirs = Theirs.of(how)
    batches = [_grids(one) for one in instances]
    return _timed(lambda turn: theirs.step(theirs.load(batches[turn % len(batches)])), how.device, steps)


def _grids(instance: Instance) -> dict[str, Tensor]:
    """A batch as theirs takes it; without a mask where no place is padded, which is faster."""
    grids = {name: torch.from_numpy(grid) for name, grid in padded(instance, 0).items()}
    if bool(grids["attention_mask"].all()):
        del grids["attention_mask"]
    return grids


def _timed(step: Callable[[int], Tensor], device: torch.device, steps: int) -> Timed:
    """Every batch once to warm up and compile, then the mean of the given number of steps."""
    for turn in range(DIFFERENT):
        loss = step(turn)
    _wait(device)
    begun = time.perf_counter()
    for turn in range(steps):
        loss = step(turn)
    _wait(device)
    seconds = (time.perf_counter() - begun) / steps
    gib = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else 0.0
    return Timed(seconds, float(loss), gib)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _clean(device: torch.device) -> None:
    """Leave the next side an empty device."""
    torch.compiler.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _instances(data: Path | None, vocabulary: int, rows: int, length: int) -> Iterator[Instance]:
    """Some batches of masked rows."""
    if data is None:
        yield from (_random(vocabulary, rows, length, seed) for seed in range(DIFFERENT))
        return
    task = Task(name="cloze", examples=Packed(Join.BORDERS), corrupt=MaskOut(Tokens()), learns=(MLM(),), view=DOCUMENTS)
    feed = Feed.plan_for(task, Corpus.open(data), length, EveryVisit(), seed=1)
    yield from (feed(step, rows) for step in range(DIFFERENT))


def _random(vocabulary: int, rows: int, length: int, seed: int) -> Instance:
    """Full rows of random ids, 15 of 100 of them to be said."""
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, vocabulary, (rows * length,), generator=draw, dtype=torch.int32).numpy()
    chosen = torch.randperm(len(ids), generator=draw)[: int(PREDICTED * len(ids))].sort().values.numpy()
    borders = np.arange(rows + 1) * length
    empty = np.zeros(len(ids), dtype=np.int64)
    inputs = Inputs(
        ids=ids,
        segment=empty.astype(np.uint8),
        document=empty.astype(np.int32),
        position=within(borders),
        rows=borders,
    )
    return Instance(inputs, (Cloze(chosen, ids[chosen], Spans(chosen, chosen + 1)),))


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data", type=Path, help="a prepared corpus; without it random rows")
    parser.add_argument("--sizes", nargs="+", default=["small", "base"])
    parser.add_argument("--lengths", nargs="+", type=int, default=[128, 512])
    parser.add_argument("--attention-dropout", nargs="+", type=float, default=[0.1, 0.0])
    parser.add_argument("--vocabulary", type=int, default=21_128)
    parser.add_argument(
        "--tokens", type=int, default=32_768, help="places in a micro-batch: 256 rows of 128, 64 of 512"
    )
    parser.add_argument("--rows", type=int, default=0, help="rows in a micro-batch, instead of that")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True, help="also compiled")
    parser.add_argument("--peak", type=float, default=790.0, help="TFLOP/s that count as 100 %% (H200, measured)")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
