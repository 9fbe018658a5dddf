"""The ground that a fine-tune crosses: heights along a line, over a plane, around the end, and with layers put back.

What arrives: two finished runs from one start, and how closely to look. What leaves: a `Side` of a landscape.
What never happens here: training, or measuring twice. Every height is kept under the name of its place.

After Hao et al. (2019), "Visualizing and Understanding the Effectiveness of BERT": axes lead from the start to where
runs ended. The second axis is made as long as the first, so that one unit is the same distance on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from unmask.errors import InputError
from unmask.evaluate.landscape_layers import layers, rolled_back, thirds
from unmask.evaluate.landscape_measure import Gauge, Kept, Ticker, survey
from unmask.evaluate.landscape_numbers import DRAWS, RADII, RISE, SHARE, basin, rise
from unmask.evaluate.landscape_runs import Walked
from unmask.evaluate.landscape_view import View
from unmask.evaluate.landscape_weights import Frame, Plane, Weights, difference, filter_normal, norm, scaled
from unmask.keys import Key
from unmask.report.landscape_record import (
    Directions,
    Height,
    Map,
    Ridge,
    Rise,
    RolledBack,
    Side,
    Trained,
)
from unmask.train.learner import Learner
from unmask.train.record import RECORD, read_record
from unmask.tune.course import Labelled


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """One side of a landscape: a run, and a second one from the same start."""

    name: str
    first: Walked
    second: Walked
    shared: frozenset[str]
    """Parameters that the second run has in common with the first; the others do not move along the second axis."""
    learner: Learner
    course: Labelled
    view: View
    device: torch.device
    kept: Path
    """Where heights are kept."""

    @property
    def places(self) -> int:
        """How many heights there are to measure."""
        few = len(self.view.line) + len(self.first.points) + len(RADII) * DRAWS + len(list(thirds(self.learner)))
        return few + self.view.grid**2

    def survey(self, tick: Ticker) -> Side:
        """Measure everything."""
        start, end = self.first.weights(0), self.first.weights(-1)
        other, way = self._way(start), difference(end, start)
        moved, length = norm(way), norm(end)
        if not moved or not norm(other):
            raise InputError(
                f"The run {self.name} did not move at all, so there is no landscape. Take a higher --rate."
            )
        frame = Frame(way, scaled(other, moved / norm(other)))
        gauge, kept = self._gauge(self.view.rows)
        ridge = self._ridge(Plane(start, end, frame.second).to(self.device), gauge, kept, tick)
        trained = self._trained(gauge, kept, tick)
        lowest = min(height.loss for height in ridge.height)
        return Side(
            name=self.name,
            trained=trained,
            ridge=ridge,
            basins=(basin(ridge, RISE), basin(ridge, SHARE * (trained.trial[0].loss - lowest))),
            rises=tuple(self._rises(end, trained.trial[-1].loss, gauge, kept, tick)),
            rolled_back=tuple(self._rolled_back(start, end, gauge, kept, tick)),
            layers=layers(self.learner, start, end),
            map=self._map(start, end, frame, norm(other) / moved, tick),
            moved=moved,
            norm=length,
        )

    def _way(self, start: Weights) -> dict[str, torch.Tensor]:
        """Where the second run led, in what it shares with the first."""
        end = self.second.weights(-1)
        return {n: end[n] - one if n in self.shared else torch.zeros_like(one) for n, one in start.items()}

    def _gauge(self, rows: int) -> tuple[Gauge, Kept]:
        return Gauge.of(self.learner, self.course, rows, self.device), Kept(self.kept / f"{rows}.jsonl")

    def _ridge(self, plane: Plane, gauge: Gauge, kept: Kept, tick: Ticker) -> Ridge:
        points = {_place(alpha, 0.0): partial(plane.at, alpha) for alpha in self.view.line}
        return Ridge(self.view.line, survey(points, gauge, kept, tick))

    def _trained(self, gauge: Gauge, kept: Kept, tick: Ticker) -> Trained:
        """The curves of the first run: each step as it was recorded, and the fixed rows where weights were kept."""
        steps = self.first.steps
        points = {f"step {step}": partial(self.first.weights, number) for number, step in enumerate(steps)}
        lines = [line for line in read_record(self.first.folder / RECORD) if line["kind"] == "step"]
        losses = tuple(float(line["loss"][self.course.objective.name]) for line in lines)
        step = tuple(float(line["step"]) for line in lines)
        return Trained(step, losses, tuple(map(float, steps)), survey(points, gauge, kept, tick))

    def _rises(self, end: Weights, loss: float, gauge: Gauge, kept: Kept, tick: Ticker) -> Iterator[Rise]:
        """How the loss rises around the end, in random directions of the same relative length."""
        found: dict[float, list[Height]] = {radius: [] for radius in RADII}
        for number in range(DRAWS):
            direction = self._direction(end, number)
            plane = _around(end, direction, direction).to(self.device)
            points = {f"radius {radius:g} draw {number}": partial(plane.at, radius) for radius in RADII}
            for radius, height in zip(RADII, survey(points, gauge, kept, tick), strict=True):
                found[radius].append(height)
        return (rise(radius, [one.loss for one in heights], loss) for radius, heights in found.items())

    def _rolled_back(
        self, start: Weights, end: Weights, gauge: Gauge, kept: Kept, tick: Ticker
    ) -> Iterator[RolledBack]:
        parts = dict(thirds(self.learner))
        points = {f"start of {word}": partial(rolled_back, start, end, names) for word, names in parts.items()}
        found = zip(parts, survey(points, gauge, kept, tick), strict=True)
        return (RolledBack(word, height) for word, height in found)

    def _map(self, start: Weights, end: Weights, frame: Frame, second: float, tick: Ticker) -> Map:
        """Heights over a plane, and the way of the run where the plane was laid through it."""
        gauge, kept = self._gauge(self.view.map_rows)
        if self.view.directions is Directions.RANDOM:
            drawn = Frame(*(self._direction(end, number) for number in range(2)))
            heights = self._heights(_around(end, drawn.first, drawn.second), "random ", gauge, kept, tick)
            return Map(Directions.RANDOM, self.view.axis, self.view.axis, heights, (), (), (0.0, 0.0), drawn.cosine)
        heights = self._heights(Plane(start, end, frame.second), "", gauge, kept, tick)
        ways = [frame.place(difference(self.first.weights(n), start)) for n in range(len(self.first.points))]
        way, off = tuple((alpha, beta) for alpha, beta, _ in ways), tuple(missed for *_, missed in ways)
        return Map(Directions.RUNS, self.view.axis, self.view.axis, heights, way, off, (0.0, second), frame.cosine)

    def _heights(
        self, plane: Plane, what: str, gauge: Gauge, kept: Kept, tick: Ticker
    ) -> tuple[tuple[Height, ...], ...]:
        plane = plane.to(self.device)
        found = []
        for beta in self.view.axis:
            points: dict[str, Callable[[], Weights]] = {
                what + _place(alpha, beta): partial(plane.at, alpha, beta) for alpha in self.view.axis
            }
            found.append(survey(points, gauge, kept, tick))
        return tuple(found)

    def _direction(self, end: Weights, number: int) -> dict[str, torch.Tensor]:
        return filter_normal(end, Key.of(self.course.seed, "landscape direction", number))


def _around(end: Weights, first: Weights, second: Weights) -> Plane:
    """A plane whose origin is the end of a run."""
    return Plane(end, {name: tensor + first[name] for name, tensor in end.items()}, second)


def _place(alpha: float, beta: float) -> str:
    return f"{alpha:.9g} {beta:.9g}"
