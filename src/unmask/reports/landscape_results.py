"""Results of a loss landscape, as plain numbers for the page and for JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Row: TypeAlias = tuple[float, ...]


class Directions(StrEnum):
    """The two axes of a map."""

    RUNS = "runs"
    """From the start to the ends of two fine-tuning runs (Hao et al., 2019)."""
    RANDOM = "random"
    """Two random directions around the end, with row norms of the weights (Li et al., 2018)."""


class DevMetric(StrEnum):
    """The metric on dev rows."""

    ERROR = "error"
    """The error rate."""
    LOSS = "loss"
    """The loss, for tasks without right and wrong answers."""


@dataclass(frozen=True, slots=True)
class LossPoint:
    """The losses at one point: on training rows and on dev rows."""

    loss: float
    dev_loss: float
    dev_error: float

    def dev_value(self, by: DevMetric) -> float:
        """The dev metric."""
        return self.dev_error if by is DevMetric.ERROR else self.dev_loss


@dataclass(frozen=True, slots=True)
class TrainingCurves:
    """The curves of a run: the loss of each step, and its evaluations."""

    step: Row
    loss: Row
    eval_step: Row
    evals: tuple[LossPoint, ...]
    """On the fixed rows, without dropout. The first is the start."""


@dataclass(frozen=True, slots=True)
class LossLine:
    """The losses on the line through the start (0) and the end (1) of a run."""

    alpha: Row
    height: tuple[LossPoint, ...]


@dataclass(frozen=True, slots=True)
class LossMap:
    """The losses over a plane, and the trajectory of a run in it."""

    directions: Directions
    alpha: Row
    beta: Row
    height: tuple[tuple[LossPoint, ...], ...]
    """One row per beta."""
    trajectory: tuple[tuple[float, float], ...]
    """The weights along the run, projected by least squares; empty for random directions."""
    off_plane: Row
    """The distance of each to the plane, relative to its distance from the start."""
    second: tuple[float, float]
    """The end of the second run."""
    cosine: float
    """The cosine of the angle between the axes."""


@dataclass(frozen=True, slots=True)
class Basin:
    """The interval of a line around its minimum where the loss is below a bound."""

    bound: float
    low: float
    high: float
    closed: bool
    """Whether both ends were found; otherwise it extends beyond the measured range."""

    @property
    def width(self) -> float:
        """The width in units of the distance from start to end."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class LossRise:
    """The rise of the loss at a distance from the end: mean and standard deviation over random directions."""

    radius: float
    """Relative to the norm of the weights."""
    mean: float
    spread: float


@dataclass(frozen=True, slots=True)
class LayerDistance:
    """The distance that a part of the network moved."""

    name: str
    moved: float
    norm: float
    """The norm of its weights at the start."""


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The losses with some blocks reset to the start."""

    name: str
    height: LossPoint


@dataclass(frozen=True, slots=True)
class LandscapeSide:
    """All results of one of the two runs."""

    name: str
    training: TrainingCurves
    line: LossLine
    map: LossMap
    basins: tuple[Basin, ...]
    """With a fixed bound, and with a tenth of the difference to the start as bound."""
    rises: tuple[LossRise, ...]
    layers: tuple[LayerDistance, ...]
    rolled_back: tuple[RolledBack, ...]
    moved: float
    """The distance from the start to the end."""
    norm: float
    """The norm of the weights at the end."""

    @property
    def start(self) -> LossPoint:
        """Before the first step."""
        return self.training.evals[0]

    @property
    def end(self) -> LossPoint:
        """After the last step."""
        return self.training.evals[-1]


@dataclass(frozen=True, slots=True)
class Landscape:
    """Two runs on the same rows in the same order: from the pre-trained network and from random weights."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """The settings, as names and values."""
    judged_by: DevMetric
    pretrained: LandscapeSide
    scratch: LandscapeSide

    @property
    def sides(self) -> tuple[LandscapeSide, LandscapeSide]:
        """Both, the pre-trained one first."""
        return self.pretrained, self.scratch
