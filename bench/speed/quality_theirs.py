"""`BertForMaskedLM` in the loop of its own examples, for `quality.py`.

What arrives: our lessons, of which the text and the rows to be judged on are taken, and what is wished for.
What leaves: seconds and held-out loss, at even times, and what was learned.
What never happens here: time on the clock for compiling, or for judging. Rows are full, so their mask says nothing; but
compiled, it decides about the kernel for attention, and the faster way is taken.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from bench.speed.common.both_sides import How, Theirs, their_adam
from bench.speed.common.rows import Rows, collator_of, grids, joined
from bench.speed.common.timing import settle
from bench.speed.quality_judged import Curve, judged
from unmask.tasks.batches import TaskBatches
from unmask.train.batches.recipe_batches import RecipeBatches

WARM = 12
"""Steps before the clock starts: they compile, and tell how many steps the minutes have."""
WARM_UP = 0.1
"""The share of all steps in which the rate rises."""


@dataclass(frozen=True)
class Wish:
    """How theirs learns."""

    data: Path
    size: str
    length: int
    minutes: float
    rates: tuple[float, ...]
    """If there are several, each is tried for the first minutes, and the one that is best by then is taken."""
    try_minutes: float
    rows: int
    loaders: int
    trials: int
    mask: str
    """The mask of full rows: of ones, none, or the one with which it is faster."""
    compiled: bool
    device: torch.device

    @staticmethod
    def of(said: argparse.Namespace) -> Wish:
        """What the command line says of their side."""
        return Wish(
            said.data,
            said.size,
            said.length,
            said.their_minutes,
            tuple(said.their_rates),
            said.try_minutes,
            said.their_rows,
            said.their_loaders,
            said.trials,
            said.their_mask,
            said.compile,
            torch.device(said.device),
        )


@dataclass(frozen=True)
class Learned:
    """Their network at the end, and how it came there."""

    curve: Curve
    theirs: Theirs


@dataclass(frozen=True)
class Loop:
    """Their network, compiled once, and everything that it learns from and is judged on."""

    how: How
    theirs: Theirs
    batches: Iterator[Mapping[str, Tensor]]
    trial: list[dict[str, Tensor]]
    each: float
    """Seconds of a step."""

    def learn(self, rate: float, minutes: float, trials: int, share: float = 1.0) -> Learned:
        """Train from the first weights for the minutes, or for a share of them, judging now and then."""
        steps = max(int(60 * minutes / self.each), 1)
        last = max(int(share * steps), 1)
        theirs = _anew(self.theirs, self.how, rate)
        rates = torch.optim.lr_scheduler.LambdaLR(theirs.optimizer, lambda step: _rate(step, steps))
        looks = {last * part // trials for part in range(1, trials + 1)}
        found, spent = [(0.0, judged(theirs, self.trial))], 0.0
        began = time.perf_counter()
        for step in range(1, last + 1):
            theirs.step(theirs.load(next(self.batches)))
            rates.step()
            if step in looks:
                settle(self.how.device)
                spent += time.perf_counter() - began
                found.append((spent, judged(theirs, self.trial)))
                print(f"transformers at {rate:g}: {spent:5.0f} s, step {step:,}: {found[-1][1]:.3f}", flush=True)
                began = time.perf_counter()
        return Learned(found, theirs)


def learn(lessons: RecipeBatches, wish: Wish) -> Learned:
    """Train for the minutes at the best of the rates."""
    warnings.filterwarnings("ignore")
    torch.set_float32_matmul_precision("high")
    feed = next(iter(lessons.task_batches.values()))
    how = How(wish.size, feed.corpus.vocab.size, wish.device, half=wish.device.type == "cuda", compiled=wish.compiled)
    theirs = Theirs.of(how)
    trial = [grids(lesson.instances[0], feed.corpus.vocab.pad) for lesson in lessons.eval_batches()]
    batches = _batches(feed, wish)
    bare = ({"input_ids": one["input_ids"], "labels": one["labels"]} for one in batches)
    ways = {"ones": batches, "none": bare}
    tried = ways if wish.mask == "faster" else [wish.mask]
    each, mask = min((_warm(theirs, ways[way], wish.device), way) for way in tried)
    print(
        f"transformers: {1000 * each:.1f} ms a step, with{'' if mask == 'ones' else 'out'} a mask of ones", flush=True
    )
    loop = Loop(how, theirs, ways[mask], trial, each)
    rate = wish.rates[0]
    if len(wish.rates) > 1:
        share = wish.try_minutes / wish.minutes
        rate = min(wish.rates, key=lambda one: loop.learn(one, wish.minutes, 1, share).curve[-1][1])
    return loop.learn(rate, wish.minutes, wish.trials)


def _rate(step: int, steps: int) -> float:
    """Up in a tenth of the steps, then down to nothing."""
    return min((step + 1) / (WARM_UP * steps), max(steps - step, 0) / ((1 - WARM_UP) * steps), 1.0)


def _batches(feed: TaskBatches, wish: Wish) -> Iterator[Mapping[str, Tensor]]:
    """Masked rows without end, in a new order each time."""
    rows = Rows(joined(feed.corpus, wish.length))
    collator: Any = collator_of(wish.data)
    loader = DataLoader(rows, wish.rows, shuffle=True, drop_last=True, collate_fn=collator, num_workers=wish.loaders)
    while True:
        for batch in loader:
            yield dict(batch)


def _warm(theirs: Theirs, batches: Iterator[Mapping[str, Tensor]], device: torch.device) -> float:
    """Seconds of a step when everything is compiled."""
    for turn in range(WARM):
        if turn == WARM // 2:
            settle(device)
            began = time.perf_counter()
        theirs.step(theirs.load(next(batches)))
    settle(device)
    return (time.perf_counter() - began) / (WARM - WARM // 2)


def _anew(theirs: Theirs, how: How, rate: float) -> Theirs:
    """The same compiled network with its first weights and an optimizer that has seen nothing."""
    theirs.model.load_state_dict(Theirs.of(replace(how, compiled=False)).model.state_dict())
    optimizer = their_adam(theirs.model)
    for group in optimizer.param_groups:
        group["lr"] = rate
    return replace(theirs, optimizer=optimizer)
