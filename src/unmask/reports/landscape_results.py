"""What was found about two fine-tunes and the ground they crossed: plain numbers, for a page and for JSON.

What arrives: numbers that were measured. What leaves: the same, with names.
What never happens here: a measurement, or a number that is made to look finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Row: TypeAlias = tuple[float, ...]


class Directions(StrEnum):
    """What the two axes of a map are."""

    RUNS = "runs"
    """From the start to where two fine-tunes ended (Hao et al., 2019)."""
    RANDOM = "random"
    """Two draws around the end, each row of a matrix as long as that of the network (Li et al., 2018)."""


class DevMetric(StrEnum):
    """By what rows are judged that were never learned from."""

    ERROR = "error"
    """The share of answers that are wrong."""
    LOSS = "loss"
    """The loss, where no answer is right or wrong."""


@dataclass(frozen=True, slots=True)
class LossPoint:
    """How high the ground is in one place: on rows that were learned from, and on rows to judge by."""

    loss: float
    dev_loss: float
    dev_error: float

    def dev_value(self, by: DevMetric) -> float:
        """The number that the rows to judge by are told with."""
        return self.dev_error if by is DevMetric.ERROR else self.dev_loss


@dataclass(frozen=True, slots=True)
class TrainingCurves:
    """The curves of a run: the loss of each step, and how the trials went."""

    step: Row
    loss: Row
    eval_step: Row
    evals: tuple[LossPoint, ...]
    """On the fixed rows, with dropout off. The first is the start."""


@dataclass(frozen=True, slots=True)
class LossLine:
    """The line through the start (0) and the end (1) of a run."""

    alpha: Row
    height: tuple[LossPoint, ...]


@dataclass(frozen=True, slots=True)
class LossMap:
    """A plane with heights, and the way of a run across it."""

    directions: Directions
    alpha: Row
    beta: Row
    height: tuple[tuple[LossPoint, ...], ...]
    """One row for each beta."""
    trajectory: tuple[tuple[float, float], ...]
    """Where the weights were along the run, by least squares; empty where the plane has no share in the way."""
    off_plane: Row
    """How far each of them is from the plane, as a part of how far it is from the start."""
    second: tuple[float, float]
    """Where the second run ended."""
    cosine: float
    """Of the angle between the two axes."""


@dataclass(frozen=True, slots=True)
class Basin:
    """The stretch of a line around its lowest place where the loss stays below a bound."""

    bound: float
    low: float
    high: float
    closed: bool
    """Whether both ends were found; else it reaches beyond what was measured."""

    @property
    def width(self) -> float:
        """How long it is, in units of the way from start to end."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class LossRise:
    """How much the loss rises at a distance from the end: the mean over random directions, and their spread."""

    radius: float
    """As a part of the norm of the weights."""
    mean: float
    spread: float


@dataclass(frozen=True, slots=True)
class LayerDistance:
    """How far a part of the network moved."""

    name: str
    moved: float
    norm: float
    """Of its weights at the start."""


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The tuned network with some blocks as they were at the start."""

    name: str
    height: LossPoint


@dataclass(frozen=True, slots=True)
class LandscapeSide:
    """Everything about one of the two runs."""

    name: str
    training: TrainingCurves
    line: LossLine
    map: LossMap
    basins: tuple[Basin, ...]
    """Below a fixed rise, and below a tenth of the way up to the start."""
    rises: tuple[LossRise, ...]
    layers: tuple[LayerDistance, ...]
    rolled_back: tuple[RolledBack, ...]
    moved: float
    """The distance from the start to the end."""
    norm: float
    """Of the weights at the end."""

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
    """Two runs on the same rows in the same order: from what a network knew, and from nothing."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """What was done, in words."""
    judged_by: DevMetric
    pretrained: LandscapeSide
    scratch: LandscapeSide

    @property
    def sides(self) -> tuple[LandscapeSide, LandscapeSide]:
        """Both, the pre-trained one first."""
        return self.pretrained, self.scratch
