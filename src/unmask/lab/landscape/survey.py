"""Measurement of one side of a landscape: a line, a plane, sharpness around the end, and layers reset to the start.

As in Hao et al. (2019), "Visualizing and Understanding the Effectiveness of BERT", the axes go from the start to the
ends of two runs. The second axis is scaled to the length of the first, so that units of both are the same distance.
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
from unmask.lab.landscape.loss_at import CachedLosses, LossMeter, Ticker, measure_all
from unmask.lab.landscape.trajectories import FinishedRun
from unmask.lab.landscape.verdict import (
    MAX_BASIN_RISE,
    NUM_DIRECTIONS,
    RADII,
    RELATIVE_BASIN_RISE,
    find_basin,
    sharpness,
)
from unmask.lab.landscape.weight_space import (
    Plane,
    PlaneAxes,
    Weights,
    difference,
    filter_normalized_direction,
    l2_norm,
    layer_distances,
    roll_back,
    scaled,
    thirds,
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
from unmask.train.rundir.run_writer import RECORD, read_record


@dataclass(frozen=True, slots=True, eq=False)
class LossSurface:
    """One side of a landscape: a run, and a second run from the same start."""

    name: str
    first: FinishedRun
    second: FinishedRun
    shared: frozenset[str]
    """Parameters that both runs have; the others are constant along the second axis."""
    model: MultiHeadModel
    batches: EpochBatches
    config: LandscapeConfig
    device: torch.device
    cache: Path
    """The folder of measured losses."""

    @property
    def num_points(self) -> int:
        """The number of losses to measure."""
        num_single = (
            len(self.config.line)
            + len(self.first.weight_files)
            + len(RADII) * NUM_DIRECTIONS
            + len(list(thirds(self.model)))
        )
        return num_single + self.config.grid**2

    def measure(self, tick: Ticker) -> LandscapeSide:
        """Measure everything."""
        start, end = self.first.weights(0), self.first.weights(-1)
        second, update = self._second_direction(start), difference(end, start)
        moved, length = l2_norm(update), l2_norm(end)
        if not moved or not l2_norm(second):
            raise InputError(
                f"The run {self.name} did not change any weight, so there is no landscape. Take a higher --lr."
            )
        axes = PlaneAxes(update, scaled(second, moved / l2_norm(second)))
        meter, cache = self._meter(self.config.rows)
        line = self._measure_line(Plane(start, end, axes.second).to(self.device), meter, cache, tick)
        trained = self._training_curves(meter, cache, tick)
        lowest = min(loss.loss for loss in line.height)
        return LandscapeSide(
            name=self.name,
            training=trained,
            line=line,
            basins=(
                find_basin(line, MAX_BASIN_RISE),
                find_basin(line, RELATIVE_BASIN_RISE * (trained.evals[0].loss - lowest)),
            ),
            rises=tuple(self._measure_sharpness(end, trained.evals[-1].loss, meter, cache, tick)),
            rolled_back=tuple(self._measure_rollbacks(start, end, meter, cache, tick)),
            layers=layer_distances(self.model, start, end),
            map=self._measure_map(start, end, axes, l2_norm(second) / moved, tick),
            moved=moved,
            norm=length,
        )

    def _second_direction(self, start: Weights) -> dict[str, torch.Tensor]:
        """The update of the second run in the shared parameters."""
        end = self.second.weights(-1)
        return {n: end[n] - one if n in self.shared else torch.zeros_like(one) for n, one in start.items()}

    def _meter(self, rows: int) -> tuple[LossMeter, CachedLosses]:
        return LossMeter.of(self.model, self.batches, rows, self.device), CachedLosses(self.cache / f"{rows}.jsonl")

    def _measure_line(self, plane: Plane, meter: LossMeter, cache: CachedLosses, tick: Ticker) -> LossLine:
        points = {_point_name(alpha, 0.0): partial(plane.at, alpha) for alpha in self.config.line}
        return LossLine(self.config.line, measure_all(points, meter, cache, tick))

    def _training_curves(self, meter: LossMeter, cache: CachedLosses, tick: Ticker) -> TrainingCurves:
        """The curves of the first run: the logged loss of each step, and the losses at the saved weights."""
        steps = self.first.steps
        points = {f"step {step}": partial(self.first.weights, number) for number, step in enumerate(steps)}
        lines = [line for line in read_record(self.first.folder / RECORD) if line["kind"] == "step"]
        losses = tuple(float(line["loss"][self.batches.objective.name]) for line in lines)
        step = tuple(float(line["step"]) for line in lines)
        return TrainingCurves(step, losses, tuple(map(float, steps)), measure_all(points, meter, cache, tick))

    def _measure_sharpness(
        self, end: Weights, end_loss: float, meter: LossMeter, cache: CachedLosses, tick: Ticker
    ) -> Iterator[LossRise]:
        """The rise of the loss around the end, in random directions of the same relative length."""
        found: dict[float, list[LossPoint]] = {radius: [] for radius in RADII}
        for number in range(NUM_DIRECTIONS):
            direction = self._direction(end, number)
            plane = _plane_around(end, direction, direction).to(self.device)
            points = {f"radius {radius:g} draw {number}": partial(plane.at, radius) for radius in RADII}
            for radius, loss in zip(RADII, measure_all(points, meter, cache, tick), strict=True):
                found[radius].append(loss)
        return (sharpness(radius, [one.loss for one in losses], end_loss) for radius, losses in found.items())

    def _measure_rollbacks(
        self, start: Weights, end: Weights, meter: LossMeter, cache: CachedLosses, tick: Ticker
    ) -> Iterator[RolledBack]:
        parts = dict(thirds(self.model))
        points = {f"start of {word}": partial(roll_back, start, end, names) for word, names in parts.items()}
        found = zip(parts, measure_all(points, meter, cache, tick), strict=True)
        return (RolledBack(word, loss) for word, loss in found)

    def _measure_map(self, start: Weights, end: Weights, axes: PlaneAxes, second: float, tick: Ticker) -> LossMap:
        """Losses over a plane, with the trajectory of the run if the plane contains its update."""
        meter, cache = self._meter(self.config.map_rows)
        if self.config.directions is Directions.RANDOM:
            random_axes = PlaneAxes(*(self._direction(end, number) for number in range(2)))
            losses = self._measure_plane(
                _plane_around(end, random_axes.first, random_axes.second), "random ", meter, cache, tick
            )
            return LossMap(
                Directions.RANDOM, self.config.axis, self.config.axis, losses, (), (), (0.0, 0.0), random_axes.cosine
            )
        losses = self._measure_plane(Plane(start, end, axes.second), "", meter, cache, tick)
        projected = [
            axes.project(difference(self.first.weights(n), start)) for n in range(len(self.first.weight_files))
        ]
        trajectory = tuple((alpha, beta) for alpha, beta, _ in projected)
        off_plane = tuple(missed for *_, missed in projected)
        return LossMap(
            Directions.RUNS,
            self.config.axis,
            self.config.axis,
            losses,
            trajectory,
            off_plane,
            (0.0, second),
            axes.cosine,
        )

    def _measure_plane(
        self, plane: Plane, what: str, meter: LossMeter, cache: CachedLosses, tick: Ticker
    ) -> tuple[tuple[LossPoint, ...], ...]:
        plane = plane.to(self.device)
        found = []
        for beta in self.config.axis:
            points: dict[str, Callable[[], Weights]] = {
                what + _point_name(alpha, beta): partial(plane.at, alpha, beta) for alpha in self.config.axis
            }
            found.append(measure_all(points, meter, cache, tick))
        return tuple(found)

    def _direction(self, end: Weights, number: int) -> dict[str, torch.Tensor]:
        return filter_normalized_direction(end, Key.of(self.batches.seed, "landscape direction", number))


def _plane_around(end: Weights, first: Weights, second: Weights) -> Plane:
    """A plane with the end of a run as origin."""
    return Plane(end, {name: tensor + first[name] for name, tensor in end.items()}, second)


def _point_name(alpha: float, beta: float) -> str:
    return f"{alpha:.9g} {beta:.9g}"
