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

from unmask.evaluate.landscape_weights import Weights
from unmask.keys import Key, permute
from unmask.nets.batch import Batch, collate
from unmask.objectives.part import Learnable
from unmask.report.landscape_record import Height
from unmask.shards.files import disk_space, write_text
from unmask.train.learner import Learner
from unmask.train.trial import still
from unmask.tune.course import JUDGED_AT_ONCE, Labelled
from unmask.tune.exercise import Exercise

Ticker: TypeAlias = Callable[[], None]
"""Hears of every place that is done."""


def fixed_rows(exercise: Exercise, count: int, seed: int, device: torch.device) -> tuple[Batch, ...]:
    """Some items of an exercise, always the same ones, on the device, those of like length together.

    Fewer items are the first ones of more.
    """
    size = len(exercise)
    chosen = permute(np.arange(min(count, size)), size, Key.of(seed, "landscape rows"))
    longest = np.maximum.reduceat(exercise.rows.lengths, exercise.begin[:-1])[chosen]
    chosen = chosen[np.argsort(longest, kind="stable")]
    at_once = max(1, JUDGED_AT_ONCE // exercise.most)
    parts = [chosen[first : first + at_once] for first in range(0, len(chosen), at_once)]
    return tuple(collate(exercise.at(some), device) for some in parts)


@dataclass(frozen=True, slots=True, eq=False)
class Gauge:
    """Measures weights."""

    learner: Learner
    """Lent: its own weights are overwritten."""
    objective: Learnable
    learned: tuple[Batch, ...]
    judged: tuple[Batch, ...]

    @staticmethod
    def of(learner: Learner, course: Labelled, rows: int, device: torch.device) -> Gauge:
        """A gauge with so many rows to learn from, and so many to judge by."""
        learned, judged = (fixed_rows(one, rows, course.seed, device) for one in (course.learned, course.judged))
        return Gauge(learner.to(device), course.objective, learned, judged)

    def __call__(self, weights: Weights) -> Height:
        """The height of a point."""
        self.learner.take_weights(weights)
        with still(self.learner):
            loss, _ = self._mean(self.learned)
            dev_loss, dev_right = self._mean(self.judged)
        return Height(loss, dev_loss, 1 - dev_right)

    def _mean(self, batches: Sequence[Batch]) -> tuple[float, float]:
        """The mean loss, and the share of right answers."""
        terms = [self.learner(batch, (self.objective,))[0] for batch in batches]
        count = sum(term.count for term in terms)
        # One look at the device for all batches; sums in double precision, so their number makes no difference.
        sums = torch.stack([torch.stack([term.total.float(), term.right.float()]) for term in terms]).cpu().double()
        loss, right = (sums.sum(0) / count).tolist()
        return loss, right


class Kept:
    """Heights in a file, each by the name of its place: what was measured once is not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found = _read(path)
        with disk_space(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, "".join(_line(name, height) for name, height in self.found.items()))  # without a torn line

    def height(self, name: str, measure: Callable[[], Height]) -> Height:
        """The height of a place: what was kept, or a new measurement, which is kept."""
        if name not in self.found:
            self.found[name] = measure()
            with disk_space(self.path.parent), self.path.open("a", encoding="utf-8") as file:
                file.write(_line(name, self.found[name]))
        return self.found[name]


def survey(points: Mapping[str, Callable[[], Weights]], gauge: Gauge, kept: Kept, tick: Ticker) -> tuple[Height, ...]:
    """The heights of all points, in their order. Points are made when they are needed, one after the other."""
    found = []
    for name, make in points.items():
        found.append(kept.height(name, lambda make=make: gauge(make())))  # type: ignore[misc]
        tick()
    return tuple(found)


def _line(name: str, height: Height) -> str:
    return json.dumps({"place": name, **asdict(height)}) + "\n"


def _read(path: Path) -> dict[str, Height]:
    found = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
            name = str(line.pop("place"))
            found[name] = Height(**line)
        except (ValueError, KeyError, TypeError):
            continue  # torn by a kill; it is measured again
    return found
