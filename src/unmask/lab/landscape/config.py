"""How far and how closely one looks at a landscape.

What arrives: wishes. What leaves: the places to measure. What never happens here: torch, or a line without both ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.core.errors import InputError
from unmask.reports.landscape_results import Directions, Row

DEFAULT_REACH = 1.0
"""How far a map of random directions goes, as a part of the norm of the weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LandscapeConfig:
    """How far and how closely one looks."""

    low: float = -1.0
    high: float = 2.0
    """Along both axes; 0 is the start of a run and 1 its end."""
    grid: int = 25
    """Places along each axis of a map. The line has about twice as many."""
    rows: int = 512
    """Rows that a height is measured on, and as many to judge by."""
    map_rows: int = 64
    """The same for the many places of a map."""
    directions: Directions = Directions.RUNS

    def __post_init__(self) -> None:
        if not self.low < 0 < 1 < self.high:
            raise InputError(
                f"--span goes from below 0 (the start) to above 1 (the end), found {self.low},{self.high}."
            )
        if self.grid < 3 or self.rows < 1 or self.map_rows < 1:
            raise InputError(
                f"A landscape needs a --grid of at least 3 and at least 1 row, found {self.grid}, {self.rows} and "
                f"{self.map_rows}."
            )

    @property
    def axis(self) -> Row:
        """The places along an axis of a map; around the end for random directions, where no run leads anywhere."""
        low, high = (-DEFAULT_REACH, DEFAULT_REACH) if self.directions is Directions.RANDOM else (self.low, self.high)
        return tuple(np.linspace(low, high, self.grid).round(9).tolist())

    @property
    def line(self) -> Row:
        """The places along the line; the start and the end are always among them."""
        places = np.linspace(self.low, self.high, 2 * self.grid - 1).round(9).tolist()
        return tuple(sorted({*places, 0.0, 1.0}))
