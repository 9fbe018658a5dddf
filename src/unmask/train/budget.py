"""How long a run lasts: in steps, in tokens or in hours.

What arrives: how far a run has come. What leaves: the share of its budget that is used up.
What never happens here: looking at a clock. The loop measures; a budget only divides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from unmask.core.errors import RecipeError


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run has come. With the weights and the optimiser's memory, this is all that a resume needs."""

    step: int = 0
    """Steps that are finished."""
    tokens: int = 0
    """Tokens that were learned from, over all processes."""
    seconds: float = 0.0
    """Time spent, that before a resume included."""


@dataclass(frozen=True, slots=True)
class StepBudget:
    """A number of steps."""

    count: int

    def __post_init__(self) -> None:
        _require(self.count >= 1, f"at least one step, found {self.count}")

    def fraction_used(self, progress: RunProgress) -> float:
        """The share that is used up."""
        return progress.step / self.count

    def text(self) -> str:
        """The budget in words."""
        return f"{self.count:,} step{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """A number of tokens."""

    count: int

    def __post_init__(self) -> None:
        _require(self.count >= 1, f"at least one token, found {self.count}")

    def fraction_used(self, progress: RunProgress) -> float:
        """The share that is used up."""
        return progress.tokens / self.count

    def text(self) -> str:
        """The budget in words."""
        return f"{self.count:,} token{'s' * (self.count != 1)}"


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """A time on the clock, validation and saving included, the start of the program not."""

    count: float

    def __post_init__(self) -> None:
        _require(0 < self.count < float("inf"), f"a positive number of hours, found {self.count}")

    def fraction_used(self, progress: RunProgress) -> float:
        """The share that is used up."""
        return progress.seconds / (3600 * self.count)

    def text(self) -> str:
        """The budget in words."""
        return f"{self.count:g} hour{'s' * (self.count != 1)}"


Budget: TypeAlias = StepBudget | TokenBudget | TimeBudget


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise RecipeError(f"A budget needs {what}.")
