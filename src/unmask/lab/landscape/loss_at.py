"""The loss at given weights, on a fixed sample of rows, with a cache of measured points."""

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
"""Called after every measured point."""


def fixed_rows(dataset: EncodedDataset, count: int, seed: int, device: torch.device) -> tuple[Batch, ...]:
    """A fixed sample of a dataset on the device, batched by length. A smaller sample is part of a larger one."""
    size = len(dataset)
    chosen = permuted_index(np.arange(min(count, size)), size, Key.of(seed, "landscape rows"))
    longest = np.maximum.reduceat(dataset.rows.lengths, dataset.group_offsets[:-1])[chosen]
    chosen = chosen[np.argsort(longest, kind="stable")]
    at_once = max(1, EVAL_BATCH_SIZE // dataset.max_group_rows)
    parts = [chosen[first : first + at_once] for first in range(0, len(chosen), at_once)]
    return tuple(collate(dataset.take(some), device, PREFIX_LM) for some in parts)


@dataclass(frozen=True, slots=True, eq=False)
class LossMeter:
    """Measures the loss of weights, without dropout, in float32; equal weights give equal losses."""

    model: MultiHeadModel
    """Its weights are overwritten."""
    objective: Objective
    train_batches: tuple[Batch, ...]
    dev_batches: tuple[Batch, ...]

    @staticmethod
    def of(model: MultiHeadModel, batches: EpochBatches, rows: int, device: torch.device) -> LossMeter:
        """A meter with this number of training rows, and of dev rows."""
        train, dev = (fixed_rows(one, rows, batches.seed, device) for one in (batches.train, batches.dev))
        return LossMeter(model.to(device), batches.objective, train, dev)

    def __call__(self, weights: Weights) -> LossPoint:
        """The losses of weights."""
        self.model.load_weights(weights)
        with eval_mode(self.model):
            loss, _ = self._mean(self.train_batches)
            dev_loss, dev_right = self._mean(self.dev_batches)
        return LossPoint(loss, dev_loss, 1 - dev_right)

    def _mean(self, batches: Sequence[Batch]) -> tuple[float, float]:
        """The mean loss and the accuracy."""
        terms = [self.model(batch, (self.objective,))[0] for batch in batches]
        count = sum(term.count for term in terms)
        # One transfer for all batches; double precision makes the sum independent of their number.
        sums = torch.stack([torch.stack([term.total.float(), term.correct.float()]) for term in terms]).cpu().double()
        loss, right = (sums.sum(0) / count).tolist()
        return loss, right


class CachedLosses:
    """A file of losses by the name of their point; measured points are not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.losses = _read(path)
        with disk_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_text(
            path, "".join(_line(name, loss) for name, loss in self.losses.items())
        )  # drops an incomplete last line

    def get_or_measure(self, name: str, measure: Callable[[], LossPoint]) -> LossPoint:
        """The losses of a point: from the file, or measured and written to the file."""
        if name not in self.losses:
            self.losses[name] = measure()
            with disk_errors(self.path.parent), self.path.open("a", encoding="utf-8") as file:
                file.write(_line(name, self.losses[name]))
        return self.losses[name]


def measure_all(
    points: Mapping[str, Callable[[], Weights]], meter: LossMeter, cache: CachedLosses, tick: Ticker
) -> tuple[LossPoint, ...]:
    """The losses of all points in order. The weights of a point are built when needed."""
    found = []
    for name, make in points.items():
        found.append(cache.get_or_measure(name, lambda make=make: meter(make())))  # type: ignore[misc]
        tick()
    return tuple(found)


def _line(name: str, loss: LossPoint) -> str:
    return json.dumps({"point": name, **asdict(loss)}) + "\n"


def _read(path: Path) -> dict[str, LossPoint]:
    found = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
            name = str(line.pop("point"))
            found[name] = LossPoint(**line)
        except (ValueError, KeyError, TypeError):
            continue  # incomplete after a kill; it is measured again
    return found
