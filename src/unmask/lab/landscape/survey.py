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

from unmask.core.errors import InputError
from unmask.core.rng import Key
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.lab.landscape.config import LandscapeConfig
from unmask.lab.landscape.layers import layer_distances, roll_back, thirds
from unmask.lab.landscape.loss_at import CachedLosses, LossMeter, Ticker, measure_all
from unmask.lab.landscape.statistics import (
    MAX_BASIN_RISE,
    NUM_DIRECTIONS,
    RADII,
    RELATIVE_BASIN_RISE,
    find_basin,
    sharpness,
)
from unmask.lab.landscape.trajectories import FinishedRun
from unmask.lab.landscape.weight_space import (
    Plane,
    PlaneAxes,
    Weights,
    difference,
    filter_normalized_direction,
    l2_norm,
    scaled,
)
from unmask.reports.landscape_results import (
    Directions,
    LandscapeSide,
    LossLine,
    LossMap,
    LossPoint,
    LossRise,
    RolledBack,
    TrainingCurves,
)
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.rundir.metrics_log import RECORD, read_record


@dataclass(frozen=True, slots=True, eq=False)
class LossSurface:
    """One side of a landscape: a run, and a second one from the same start."""

    name: str
    first: FinishedRun
    second: FinishedRun
    shared: frozenset[str]
    """Parameters that the second run has in common with the first; the others do not move along the second axis."""
    learner: MultiHeadModel
    batches: EpochBatches
    config: LandscapeConfig
    device: torch.device
    cache: Path
    """Where heights are kept."""

    @property
    def num_points(self) -> int:
        """How many heights there are to measure."""
        few = (
            len(self.config.line)
            + len(self.first.weight_files)
            + len(RADII) * NUM_DIRECTIONS
            + len(list(thirds(self.learner)))
        )
        return few + self.config.grid**2

    def measure(self, tick: Ticker) -> LandscapeSide:
        """Measure everything."""
        start, end = self.first.weights(0), self.first.weights(-1)
        other, way = self._second_direction(start), difference(end, start)
        moved, length = l2_norm(way), l2_norm(end)
        if not moved or not l2_norm(other):
            raise InputError(
                f"The run {self.name} did not move at all, so there is no landscape. Take a higher --rate."
            )
        frame = PlaneAxes(way, scaled(other, moved / l2_norm(other)))
        gauge, kept = self._meter(self.config.rows)
        ridge = self._measure_line(Plane(start, end, frame.second).to(self.device), gauge, kept, tick)
        trained = self._training_curves(gauge, kept, tick)
        lowest = min(height.loss for height in ridge.height)
        return LandscapeSide(
            name=self.name,
            training=trained,
            line=ridge,
            basins=(
                find_basin(ridge, MAX_BASIN_RISE),
                find_basin(ridge, RELATIVE_BASIN_RISE * (trained.evals[0].loss - lowest)),
            ),
            rises=tuple(self._measure_sharpness(end, trained.evals[-1].loss, gauge, kept, tick)),
            rolled_back=tuple(self._measure_rollbacks(start, end, gauge, kept, tick)),
            layers=layer_distances(self.learner, start, end),
            map=self._measure_map(start, end, frame, l2_norm(other) / moved, tick),
            moved=moved,
            norm=length,
        )

    def _second_direction(self, start: Weights) -> dict[str, torch.Tensor]:
        """Where the second run led, in what it shares with the first."""
        end = self.second.weights(-1)
        return {n: end[n] - one if n in self.shared else torch.zeros_like(one) for n, one in start.items()}

    def _meter(self, rows: int) -> tuple[LossMeter, CachedLosses]:
        return LossMeter.of(self.learner, self.batches, rows, self.device), CachedLosses(self.cache / f"{rows}.jsonl")

    def _measure_line(self, plane: Plane, gauge: LossMeter, kept: CachedLosses, tick: Ticker) -> LossLine:
        points = {_point_name(alpha, 0.0): partial(plane.at, alpha) for alpha in self.config.line}
        return LossLine(self.config.line, measure_all(points, gauge, kept, tick))

    def _training_curves(self, gauge: LossMeter, kept: CachedLosses, tick: Ticker) -> TrainingCurves:
        """The curves of the first run: each step as it was recorded, and the fixed rows where weights were kept."""
        steps = self.first.steps
        points = {f"step {step}": partial(self.first.weights, number) for number, step in enumerate(steps)}
        lines = [line for line in read_record(self.first.folder / RECORD) if line["kind"] == "step"]
        losses = tuple(float(line["loss"][self.batches.objective.name]) for line in lines)
        step = tuple(float(line["step"]) for line in lines)
        return TrainingCurves(step, losses, tuple(map(float, steps)), measure_all(points, gauge, kept, tick))

    def _measure_sharpness(
        self, end: Weights, loss: float, gauge: LossMeter, kept: CachedLosses, tick: Ticker
    ) -> Iterator[LossRise]:
        """How the loss rises around the end, in random directions of the same relative length."""
        found: dict[float, list[LossPoint]] = {radius: [] for radius in RADII}
        for number in range(NUM_DIRECTIONS):
            direction = self._direction(end, number)
            plane = _plane_around(end, direction, direction).to(self.device)
            points = {f"radius {radius:g} draw {number}": partial(plane.at, radius) for radius in RADII}
            for radius, height in zip(RADII, measure_all(points, gauge, kept, tick), strict=True):
                found[radius].append(height)
        return (sharpness(radius, [one.loss for one in heights], loss) for radius, heights in found.items())

    def _measure_rollbacks(
        self, start: Weights, end: Weights, gauge: LossMeter, kept: CachedLosses, tick: Ticker
    ) -> Iterator[RolledBack]:
        parts = dict(thirds(self.learner))
        points = {f"start of {word}": partial(roll_back, start, end, names) for word, names in parts.items()}
        found = zip(parts, measure_all(points, gauge, kept, tick), strict=True)
        return (RolledBack(word, height) for word, height in found)

    def _measure_map(self, start: Weights, end: Weights, frame: PlaneAxes, second: float, tick: Ticker) -> LossMap:
        """Heights over a plane, and the way of the run where the plane was laid through it."""
        gauge, kept = self._meter(self.config.map_rows)
        if self.config.directions is Directions.RANDOM:
            drawn = PlaneAxes(*(self._direction(end, number) for number in range(2)))
            heights = self._measure_plane(_plane_around(end, drawn.first, drawn.second), "random ", gauge, kept, tick)
            return LossMap(
                Directions.RANDOM, self.config.axis, self.config.axis, heights, (), (), (0.0, 0.0), drawn.cosine
            )
        heights = self._measure_plane(Plane(start, end, frame.second), "", gauge, kept, tick)
        ways = [frame.project(difference(self.first.weights(n), start)) for n in range(len(self.first.weight_files))]
        way, off = tuple((alpha, beta) for alpha, beta, _ in ways), tuple(missed for *_, missed in ways)
        return LossMap(
            Directions.RUNS, self.config.axis, self.config.axis, heights, way, off, (0.0, second), frame.cosine
        )

    def _measure_plane(
        self, plane: Plane, what: str, gauge: LossMeter, kept: CachedLosses, tick: Ticker
    ) -> tuple[tuple[LossPoint, ...], ...]:
        plane = plane.to(self.device)
        found = []
        for beta in self.config.axis:
            points: dict[str, Callable[[], Weights]] = {
                what + _point_name(alpha, beta): partial(plane.at, alpha, beta) for alpha in self.config.axis
            }
            found.append(measure_all(points, gauge, kept, tick))
        return tuple(found)

    def _direction(self, end: Weights, number: int) -> dict[str, torch.Tensor]:
        return filter_normalized_direction(end, Key.of(self.batches.seed, "landscape direction", number))


def _plane_around(end: Weights, first: Weights, second: Weights) -> Plane:
    """A plane whose origin is the end of a run."""
    return Plane(end, {name: tensor + first[name] for name, tensor in end.items()}, second)


def _point_name(alpha: float, beta: float) -> str:
    return f"{alpha:.9g} {beta:.9g}"
