"""`BertForMaskedLM` in the loop of its own examples, for `quality.py`.

What arrives: our lessons, of which the text and the rows to be judged on are taken, and what is wished for.
What leaves: seconds and held-out loss, at even times.
What never happens here: time on the clock for compiling, or for judging.
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
from both_sides import How, Theirs
from joined import joined
from pretrain_cpu import collator_of
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from unmask.feed import Feed, padded
from unmask.records import Ids, Instance
from unmask.train.lessons import Lessons

WARM = 12
"""Steps before the clock starts: they compile, and tell how many steps the minutes have."""
WARM_UP = 0.05
"""The share of all steps in which the rate rises."""


@dataclass(frozen=True)
class Wish:
    """How theirs learns."""

    data: Path
    size: str
    length: int
    minutes: float
    rate: float
    rows: int
    loaders: int
    trials: int
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
            said.their_rate,
            said.their_rows,
            said.their_loaders,
            said.trials,
            said.compile,
            torch.device(said.device),
        )


class Rows(Dataset[dict[str, list[int]]]):
    """Rows of text that goes on across documents, as lists of ids: what the collator takes."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row: int) -> dict[str, list[int]]:
        return {"input_ids": self.ids[row].tolist()}


def learn(lessons: Lessons, wish: Wish) -> list[tuple[float, float]]:
    """Train for the minutes, judging now and then."""
    warnings.filterwarnings("ignore")
    torch.set_float32_matmul_precision("high")
    feed = next(iter(lessons.feeds.values()))
    how = How(wish.size, feed.corpus.vocab.size, wish.device, half=wish.device.type == "cuda", compiled=wish.compiled)
    theirs = Theirs.of(how)
    trial = [_grids(lesson.instances[0], feed.corpus.vocab.pad) for lesson in lessons.trial()]
    batches = _batches(feed, wish)
    each = _warm(theirs, batches, wish)
    steps = max(int(60 * wish.minutes / each), 1)
    print(f"transformers: {1000 * each:.1f} ms a step, {steps:,} steps in {wish.minutes:g} minutes", flush=True)
    theirs = _again(theirs, how)
    rates = torch.optim.lr_scheduler.LambdaLR(theirs.optimizer, lambda step: _rate(step, steps))
    found, spent, looks = (
        [(0.0, _judged(theirs, trial))],
        0.0,
        {steps * k // wish.trials for k in range(1, wish.trials)},
    )
    settled, began = wish.device.type == "cuda", time.perf_counter()
    for step in range(1, steps + 1):
        theirs.step(theirs.load(next(batches)))
        rates.step()
        if step in looks or step == steps:
            torch.cuda.synchronize() if settled else None
            spent += time.perf_counter() - began
            found.append((spent, _judged(theirs, trial)))
            print(f"transformers: {spent:5.0f} s, step {step:,}: {found[-1][1]:.3f}", flush=True)
            began = time.perf_counter()
    return found


def _rate(step: int, steps: int) -> float:
    """Up in a twentieth of the steps, then down to nothing."""
    return min((step + 1) / (WARM_UP * steps), max(steps - step, 0) / ((1 - WARM_UP) * steps), 1.0)


def _batches(feed: Feed, wish: Wish) -> Iterator[Mapping[str, Tensor]]:
    """Masked rows without end, in a new order each time."""
    rows = Rows(joined(feed.corpus, wish.length))
    collator: Any = collator_of(wish.data)
    loader = DataLoader(rows, wish.rows, shuffle=True, drop_last=True, collate_fn=collator, num_workers=wish.loaders)
    while True:
        for batch in loader:
            yield {"input_ids": batch["input_ids"], "labels": batch["labels"]}  # rows are full, so no mask is needed


def _warm(theirs: Theirs, batches: Iterator[Mapping[str, Tensor]], wish: Wish) -> float:
    """Seconds of a step when everything is compiled."""
    _set_rate(theirs, wish.rate)
    for turn in range(WARM):
        if turn == WARM // 2:
            torch.cuda.synchronize() if wish.device.type == "cuda" else None
            began = time.perf_counter()
        theirs.step(theirs.load(next(batches)))
    torch.cuda.synchronize() if wish.device.type == "cuda" else None
    return (time.perf_counter() - began) / (WARM - WARM // 2)


def _set_rate(theirs: Theirs, rate: float) -> None:
    for group in theirs.optimizer.param_groups:
        group["lr"] = group["initial_lr"] = rate


def _again(theirs: Theirs, how: How) -> Theirs:
    """The same compiled network with its first weights and a new optimiser."""
    rate = theirs.optimizer.param_groups[0]["lr"]
    fresh = Theirs.of(replace(how, compiled=False))
    theirs.model.load_state_dict(fresh.model.state_dict())
    made = Theirs(theirs.model, theirs.called, fresh.optimizer, theirs.run)
    groups = [group["params"] for group in theirs.optimizer.param_groups]
    for group, params in zip(made.optimizer.param_groups, groups, strict=True):
        group["params"] = params
    _set_rate(made, rate)
    return made


@torch.no_grad()
def _judged(theirs: Theirs, trial: list[dict[str, Tensor]]) -> float:
    """Mean loss over all chosen tokens of the held-out rows."""
    theirs.model.eval()
    total = count = 0.0
    for batch in trial:
        asked = int((batch["labels"] >= 0).sum())
        with theirs.run.autocast():
            total += float(theirs.model(**theirs.load(batch)).loss) * asked
        count += asked
    theirs.model.train()
    return total / count


def _grids(instance: Instance, pad: int) -> dict[str, Tensor]:
    return {name: torch.from_numpy(grid) for name, grid in padded(instance, pad).items()}
