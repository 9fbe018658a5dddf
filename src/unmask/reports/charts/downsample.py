"""Long series made short enough to draw, and steady enough to read.

What arrives: a series of any length. What leaves: at most a few hundred points, raw or smoothed.
What never happens here: a point that was picked. Every value of a bucket enters its mean.
"""

from __future__ import annotations

import numpy as np

from unmask.reports.read_log import MetricSeries, Reals

MAX_POINTS = 500
"""Points of one line: as many as a wide screen can show."""
_WINDOWS = 30
"""How many smoothing windows a curve is long."""
_FEW = 24
"""A curve of so few points is shown as it is."""


def thin(series: MetricSeries, max_points: int = MAX_POINTS) -> MetricSeries:
    """Means of neighbouring points, in buckets of nearly equal size; the last point stands where the series ends."""
    count = len(series)
    if count <= max_points:
        return series
    starts = np.linspace(0, count, max_points, endpoint=False).astype(np.int64)
    ends = np.append(starts[1:], count) - 1
    sizes = ends - starts + 1
    value: Reals = np.add.reduceat(series.value, starts) / sizes
    return MetricSeries(series.step[ends], series.tokens[ends], value)


def smooth(series: MetricSeries) -> MetricSeries:
    """Each point as the mean of its surroundings.

    Curves fall fast at first, so there the surroundings are narrow: a wide mean would hide how high they began.
    """
    count = len(series)
    half = 0 if count < _FEW else max(count // _WINDOWS // 2, 1)
    place = np.arange(count)
    left = np.maximum(place - half, 0)
    right = np.minimum(place + np.minimum(np.maximum(place, half // 4), half), count - 1) + 1
    total = np.append(0.0, np.cumsum(series.value))
    value: Reals = (total[right] - total[left]) / (right - left)
    return MetricSeries(series.step, series.tokens, value)


def tokens_at(series: MetricSeries, steps: Reals) -> Reals:
    """How many tokens had been seen at some steps, by straight lines between those that were written."""
    found: Reals = np.interp(steps, np.append(0.0, series.step), np.append(0.0, series.tokens))
    return found
