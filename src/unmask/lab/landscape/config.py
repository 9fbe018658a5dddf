"""Configuration of a loss landscape: the points at which the loss is measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.core.errors import InputError
from unmask.reports.landscape_results import Directions, Row

DEFAULT_REACH = 1.0
"""The range of a map of random directions, as a fraction of the norm of the weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LandscapeConfig:
    """Range, resolution and rows of a landscape."""

    low: float = -1.0
    high: float = 2.0
    """The range along both axes; 0 is the start of a run and 1 its end."""
    grid: int = 25
    """Points along each axis of a map. The line has about twice as many."""
    rows: int = 512
    """Training rows per loss, and as many dev rows."""
    map_rows: int = 64
    """The same for each point of a map."""
    directions: Directions = Directions.RUNS

    def __post_init__(self) -> None:
        if not self.low < 0 < 1 < self.high:
            raise InputError(
                f"--span needs a range from below 0 (the start) to above 1 (the end), found {self.low},{self.high}. "
                "Take another range, such as -1,2."
            )
        if self.grid < 3 or self.rows < 1 or self.map_rows < 1:
            raise InputError(
                f"A landscape needs a --grid of at least 3 and at least 1 row, found {self.grid}, {self.rows} and "
                f"{self.map_rows}. Take larger numbers."
            )

    @property
    def axis(self) -> Row:
        """The points along an axis of a map; for random directions, around the end of the run."""
        low, high = (-DEFAULT_REACH, DEFAULT_REACH) if self.directions is Directions.RANDOM else (self.low, self.high)
        return tuple(np.linspace(low, high, self.grid).round(9).tolist())

    @property
    def line(self) -> Row:
        """The points along the line, including the start and the end."""
        points = np.linspace(self.low, self.high, 2 * self.grid - 1).round(9).tolist()
        return tuple(sorted({*points, 0.0, 1.0}))
