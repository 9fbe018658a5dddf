"""Numbers in words, round ticks, and long series made short."""

import numpy as np
import pytest

from unmask.reports.read_log import MetricSeries, smooth, thin, tokens_at
from unmask.reports.text.number_format import (
    NumberFormat,
    format_count,
    format_duration,
    format_percent,
    tick_labels,
    ticks,
)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (950, "950"), (1200, "1,200"), (12_345, "12.3 k"), (999_999, "1 M"), (4.1e6, "4.1 M"), (3e9, "3 B")],
)
def test_counts_are_short(value, said):
    assert format_count(value) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.84, "0.8 s"),
        (42, "42 s"),
        (125, "2 min 05 s"),
        (780, "13 min"),
        (11_100, "3 h 05 min"),
        (190_000, "2 d 4 h"),
    ],
)
def test_times_are_short(seconds, said):
    assert format_duration(seconds) == said


def test_shares_keep_two_digits_where_they_are_small():
    assert (format_percent(0), format_percent(0.0031), format_percent(0.1503)) == ("0.0 %", "0.31 %", "15.0 %")


@pytest.mark.parametrize(
    ("low", "high", "unit", "said"),
    [
        (0, 1000, NumberFormat.COUNT, ["0", "200", "400", "600", "800", "1,000"]),
        (2.2, 9.1, NumberFormat.PLAIN, ["4", "6", "8"]),
        (0.33, 0.71, NumberFormat.PLAIN, ["0.4", "0.5", "0.6", "0.7"]),
        (0, 1e-4, NumberFormat.PLAIN, ["0", "2e-5", "4e-5", "6e-5", "8e-5", "1e-4"]),
        (0, 2e-3, NumberFormat.PLAIN, ["0", "5e-4", "0.001", "0.0015", "0.002"]),
        (0, 0.52, NumberFormat.SHARE, ["0 %", "20 %", "40 %"]),
        (0, 3.2e6, NumberFormat.COUNT, ["0", "1 M", "2 M", "3 M"]),
    ],
)
def test_ticks_are_round(low, high, unit, said):
    about = 5 if len(said) > 4 else 4
    assert list(tick_labels(ticks(low, high, about), unit)) == said


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 37.0, 1e12])
@pytest.mark.parametrize("low", [0.0, 0.3])
def test_ticks_lie_inside_and_are_few(size, low):
    found = ticks(low * size, size, 5)
    assert 2 <= len(found) <= 6
    assert low * size - 1e-9 * size <= found[0] < found[-1] <= size * (1 + 1e-9)


def series(values):
    at = np.arange(1.0, len(values) + 1)
    return MetricSeries(at, at * 100, np.asarray(values, dtype=np.float64))


def test_thinning_keeps_the_mean_and_the_end():
    rng = np.random.default_rng(0)
    long = series(rng.normal(size=100_000))
    thinned = thin(long, 500)
    assert len(thinned) == 500
    assert (thinned.step[-1], thinned.tokens[-1]) == (100_000, 10_000_000)
    assert thinned.value.mean() == pytest.approx(long.value.mean(), abs=1e-3)
    assert thin(series([1, 2, 3]), 500).value.tolist() == [1, 2, 3]


def test_smoothing_calms_noise_and_leaves_a_level_alone():
    rng = np.random.default_rng(0)
    noisy = series(rng.normal(3, 1, 600))
    smoothed = smooth(noisy)
    assert smoothed.value.std() < 0.4 * noisy.value.std()
    assert smooth(series(np.full(100, 2.5))).value.tolist() == pytest.approx([2.5] * 100)
    assert smooth(series([5, 1, 4])).value.tolist() == [5, 1, 4]


def test_tokens_are_read_between_steps():
    assert tokens_at(series([0, 0]), np.array([0.0, 0.5, 2.0])).tolist() == [0, 50, 200]
