"""A step that was begun: its work is queued, and its numbers are on their way.

What arrives: what the loop knows before the device has computed anything. What leaves: the line of the step, as soon as
its numbers are there. What never happens here: looking at a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unmask.train.budget import Progress
from unmask.train.checkpoint import State
from unmask.train.course import Lesson
from unmask.train.numbers import Numbers
from unmask.train.step import Loaded, score


@dataclass(frozen=True, slots=True)
class Size:
    """How much a step learns from, over all processes."""

    counts: Sequence[float]
    """Answers, one number an objective."""
    tokens: float
    rows: float
    predicted: float

    @staticmethod
    def asks(lesson: Lesson) -> list[float]:
        """What each process adds to it, as plain numbers."""
        return [*lesson.asked(), lesson.tokens, lesson.rows, lesson.predicted]

    @staticmethod
    def of(summed: Sequence[float]) -> Size:
        """The sums of all processes."""
        return Size(summed[:-3], *summed[-3:])


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that was begun."""

    before: State
    after: Progress
    loaded: Loaded
    """Kept until the numbers are there: if they are not finite, whoever looks for the reason needs the batch."""
    size: Size
    rate: float
    waited: float
    """Seconds that the loop waited for the lesson."""
    said: Numbers
    """The norm of the gradient, then the sums of losses and of right answers of this process."""
    weighed: Numbers
    """The learned weights of the losses; empty where they are fixed."""

    def line(self, share: float, norm: float, sums: Sequence[float], spent: float, now: float) -> dict[str, object]:
        """The line of the step, from the sums of all processes and what the clock says."""
        lesson, size = self.loaded.lesson, self.size
        names = [one.name for one in lesson.objectives]
        found = score(names, sums[: len(names)], sums[len(names) :], size.counts)
        weights = {name: round(weight, 6) for name, weight in zip(names, self.weighed.read(), strict=False)}
        return {
            "kind": "step",
            "step": self.after.step,
            "share": round(share, 6),
            "place": lesson.place,
            "length": lesson.length,
            **found.told(),
            **({"weight": weights} if weights else {}),
            "rate": self.rate,
            "norm": round(norm, 4),
            "padding": round(1 - size.tokens / (size.rows * lesson.length), 4),
            "predicted": round(size.predicted / size.tokens, 4),
            "tokens": self.after.tokens,
            "tokens_per_second": round(size.tokens / max(spent, 1e-9), 1),
            "waited": round(self.waited, 6),
            "seconds": round(now, 3),
        }
