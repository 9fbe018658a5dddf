"""Scores of several runs as a person reads them.

What arrives: one score for each seed. What leaves: a few words: mean and spread, in hundredths.
What never happens here: a spread for a single run.
"""

from __future__ import annotations

import math
import statistics
from typing import TypeAlias

Scores: TypeAlias = tuple[float, ...]
"""One score for each seed."""


def format_mean_std(scores: Scores) -> str:
    """`82.1 ±0.4`, or `82.1` for one run; nothing where there is none or where it is no number."""
    if not scores or not all(map(math.isfinite, scores)):
        return ""
    spread = f" ±{100 * statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
    return f"{100 * statistics.fmean(scores):.1f}{spread}"
