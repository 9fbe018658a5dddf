"""How high the ground is: the loss of any weights, on rows that never change.

What arrives: a learner as a shape to put weights into, and exercises. What leaves: a `Height` for each set of weights.
What never happens here: dropout, a gradient, another order of rows, or numbers of less than 32 bits. The same weights
have the same height every time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch

from unmask.config.attention_pattern import PREFIX_LM
from unmask.core.io.atomic import disk_errors, write_text
from unmask.core.rng import Key, permuted_index
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.epoch_batches import EVAL_BATCH_SIZE, EpochBatches
from unmask.lab.landscape.weight_space import Weights
from unmask.nets.batch.batch import Batch, collate
from unmask.objectives.protocol import Objective
from unmask.reports.landscape_results import LossPoint
from unmask.train.evaluate import eval_mode
from unmask.train.multi_head_model import MultiHeadModel

Ticker: TypeAlias = Callable[[], None]
"""Hears of every place that is done."""


def fixed_rows(dataset: EncodedDataset, count: int, seed: int, device: torch.device) -> tuple[Batch, ...]:
    """Some items of an exercise, always the same ones, on the device, those of like length together.

    Fewer items are the first ones of more.
    """
    size = len(dataset)
    chosen = permuted_index(np.arange(min(count, size)), size, Key.of(seed, "landscape rows"))
    longest = np.maximum.reduceat(dataset.rows.lengths, dataset.group_offsets[:-1])[chosen]
    chosen = chosen[np.argsort(longest, kind="stable")]
    at_once = max(1, EVAL_BATCH_SIZE // dataset.max_group_rows)
    parts = [chosen[first : first + at_once] for first in range(0, len(chosen), at_once)]
    return tuple(collate(dataset.take(some), device, PREFIX_LM) for some in parts)


@dataclass(frozen=True, slots=True, eq=False)
class LossMeter:
    """Measures weights."""

    learner: MultiHeadModel
    """Lent: its own weights are overwritten."""
    objective: Objective
    train_batches: tuple[Batch, ...]
    dev_batches: tuple[Batch, ...]

    @staticmethod
    def of(learner: MultiHeadModel, course: EpochBatches, rows: int, device: torch.device) -> LossMeter:
        """A gauge with so many rows to learn from, and so many to judge by."""
        learned, judged = (fixed_rows(one, rows, course.seed, device) for one in (course.train, course.dev))
        return LossMeter(learner.to(device), course.objective, learned, judged)

    def __call__(self, weights: Weights) -> LossPoint:
        """The height of a point."""
        self.learner.load_weights(weights)
        with eval_mode(self.learner):
            loss, _ = self._mean(self.train_batches)
            dev_loss, dev_right = self._mean(self.dev_batches)
        return LossPoint(loss, dev_loss, 1 - dev_right)

    def _mean(self, batches: Sequence[Batch]) -> tuple[float, float]:
        """The mean loss, and the share of right answers."""
        terms = [self.learner(batch, (self.objective,))[0] for batch in batches]
        count = sum(term.count for term in terms)
        # One look at the device for all batches; sums in double precision, so their number makes no difference.
        sums = torch.stack([torch.stack([term.total.float(), term.right.float()]) for term in terms]).cpu().double()
        loss, right = (sums.sum(0) / count).tolist()
        return loss, right


class CachedLosses:
    """Heights in a file, each by the name of its place: what was measured once is not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.losses = _read(path)
        with disk_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, "".join(_line(name, height) for name, height in self.losses.items()))  # without a torn line

    def get_or_measure(self, name: str, measure: Callable[[], LossPoint]) -> LossPoint:
        """The height of a place: what was kept, or a new measurement, which is kept."""
        if name not in self.losses:
            self.losses[name] = measure()
            with disk_errors(self.path.parent), self.path.open("a", encoding="utf-8") as file:
                file.write(_line(name, self.losses[name]))
        return self.losses[name]


def measure_all(
    points: Mapping[str, Callable[[], Weights]], meter: LossMeter, cache: CachedLosses, tick: Ticker
) -> tuple[LossPoint, ...]:
    """The heights of all points, in their order. Points are made when they are needed, one after the other."""
    found = []
    for name, make in points.items():
        found.append(cache.get_or_measure(name, lambda make=make: meter(make())))  # type: ignore[misc]
        tick()
    return tuple(found)


def _line(name: str, height: LossPoint) -> str:
    return json.dumps({"place": name, **asdict(height)}) + "\n"


def _read(path: Path) -> dict[str, LossPoint]:
    found = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
            name = str(line.pop("place"))
            found[name] = LossPoint(**line)
        except (ValueError, KeyError, TypeError):
            continue  # torn by a kill; it is measured again
    return found
