"""Points, planes and basins: ends that are exact, places that are found again, widths that can be computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from unmask.config.network import TransformerConfig
from unmask.core.errors import InputError
from unmask.core.rng import Key
from unmask.lab.landscape.config import LandscapeConfig
from unmask.lab.landscape.loss_at import CachedLosses
from unmask.lab.landscape.verdict import comparison_rows, describe_verdict, find_basin, sharpness, steps_to
from unmask.lab.landscape.weight_space import (
    Plane,
    PlaneAxes,
    difference,
    filter_normalized_direction,
    l2_norm,
    layer_distances,
    roll_back,
    scaled,
    thirds,
)
from unmask.objectives.mlm import MLM
from unmask.reports.landscape_results import (
    Basin,
    DevMetric,
    Directions,
    Landscape,
    LandscapeSide,
    LossLine,
    LossMap,
    LossPoint,
    LossRise,
    TrainingCurves,
)
from unmask.train.multi_head_model import MultiHeadModel


def drawn(seed: int, scale: float = 1.0) -> dict[str, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    return {name: scale * torch.randn(shape, generator=source) for name, shape in (("m", (5, 7)), ("v", (6,)))}


def test_both_ends_of_a_plane_are_exact():
    start, end = drawn(1), drawn(2, 1e-3)
    plane = Plane(start, end, drawn(3))
    for place, aim in ((plane.at(0.0), start), (plane.at(1.0), end)):
        assert all(torch.equal(place[name], aim[name]) for name in aim)
    # What a sum with a difference gives instead is not the end; otherwise this would hold nothing.
    assert not all(torch.equal(start[name] + (end[name] - start[name]), end[name]) for name in end)


def test_the_second_run_lies_where_its_length_says():
    start, end, other = drawn(1), drawn(2), drawn(3, 4.0)
    way, second = difference(end, start), difference(other, start)
    ratio = l2_norm(second) / l2_norm(way)
    plane = Plane(start, end, scaled(second, 1 / ratio))
    assert l2_norm(plane.second) == pytest.approx(l2_norm(way))
    place = plane.at(0.0, ratio)
    assert all(torch.allclose(place[name], other[name], atol=1e-5) for name in other)


def test_least_squares_find_the_place_of_a_point_on_axes_that_are_not_at_right_angles():
    first, step = drawn(1), drawn(2)
    frame = PlaneAxes(first, {name: first[name] + 0.3 * step[name] for name in first})
    assert frame.cosine > 0.9
    point = {name: 0.4 * frame.first[name] - 1.5 * frame.second[name] for name in first}
    alpha, beta, off = frame.project(point)
    assert (alpha, beta) == (pytest.approx(0.4, abs=1e-4), pytest.approx(-1.5, abs=1e-4))
    assert off < 1e-3
    away = drawn(5)
    axes = [np.concatenate([one[name].double().numpy().ravel() for name in first]) for one in (first, frame.second)]
    aim = np.concatenate([away[name].double().numpy().ravel() for name in first])
    (a, b), rest, *_ = np.linalg.lstsq(np.stack(axes, 1), aim, rcond=None)
    assert frame.project(away) == pytest.approx((a, b, math.sqrt(rest[0]) / np.linalg.norm(aim)), abs=1e-5)
    assert all(map(math.isfinite, PlaneAxes(first, scaled(first, 2.0)).project(away)))  # parallel axes span no plane


def test_a_random_direction_has_the_length_of_every_row_and_leaves_vectors_alone():
    weights = drawn(1)
    found = filter_normalized_direction(weights, Key.of(0, "direction"))
    assert torch.allclose(found["m"].norm(dim=1), weights["m"].norm(dim=1))
    assert not found["v"].any()
    again, other = (
        filter_normalized_direction(weights, Key.of(0, "direction")),
        filter_normalized_direction(weights, Key.of(1, "direction")),
    )
    assert torch.equal(found["m"], again["m"])
    assert not torch.equal(found["m"], other["m"])


def ridge(loss, low=-1.0, high=3.0, places=401) -> LossLine:
    alpha = tuple(np.linspace(low, high, places).tolist())
    return LossLine(alpha, tuple(LossPoint(float(loss(a)), 0.0, 0.0) for a in alpha))


def test_the_width_of_a_parabola_is_the_one_of_school():
    found = find_basin(ridge(lambda a: 0.2 + (a - 1) ** 2), 0.1)
    assert found.width == pytest.approx(2 * math.sqrt(0.1), abs=1e-3)
    assert (found.low + found.high) / 2 == pytest.approx(1.0, abs=1e-3)
    assert found.closed
    assert found.bound == pytest.approx(0.3)


def test_a_basin_ends_at_the_first_rise_and_says_when_it_does_not_end():
    two = find_basin(ridge(lambda a: min((a - 1) ** 2, (a - 3) ** 2 + 0.01)), 0.1)
    assert two.high < 2
    slope = find_basin(ridge(lambda a: -a), 0.1)
    assert (slope.high, slope.closed) == (3.0, False)
    assert slope.width == pytest.approx(0.1, abs=1e-6)


def side(name: str, width: float, moved: float, rising: float, ends: float = 0.1) -> LandscapeSide:
    trials = (LossPoint(0.7, 0.7, 0.5), LossPoint(0.4, 0.5, 0.2), LossPoint(ends, 0.5, 0.2))
    return LandscapeSide(
        name=name,
        training=TrainingCurves((1.0, 2.0), (0.7, 0.4), (0.0, 10.0, 20.0), trials),
        line=ridge(abs, places=5),
        map=LossMap(Directions.RUNS, (0.0, 1.0), (0.0, 1.0), ((trials[0],) * 2,) * 2, (), (), (0.0, 1.0), 0.0),
        basins=(Basin(0.2, 1 - width / 2, 1 + width / 2, True),) * 2,
        rises=(LossRise(0.5, rising, 0.01),),
        layers=(),
        rolled_back=(),
        moved=moved,
        norm=10.0,
    )


def both(pretrained: LandscapeSide, scratch: LandscapeSide) -> Landscape:
    return Landscape("x", (), DevMetric.ERROR, pretrained, scratch)


def test_a_verdict_is_given_only_where_all_measures_agree():
    scratch = side("from scratch", 1.0, 3.0, 0.5)
    said = " ".join(describe_verdict(both(side("pre-trained", 2.0, 3.0, 0.1), scratch)))
    assert "The wider basin is that of the pre-trained run, by all three" in said
    assert "one run of each" in said
    # Wider by its own way, which was short: narrower as a distance.
    said = " ".join(describe_verdict(both(side("pre-trained", 2.0, 1.0, 0.1), scratch)))
    assert "do not agree" in said
    assert "along the line as a distance that of the run from scratch" in said
    # A difference of rises that is no larger than their spread is none.
    said = " ".join(describe_verdict(both(side("pre-trained", 2.0, 3.0, 0.499), scratch)))
    assert "in random directions neither" in said
    said = " ".join(describe_verdict(both(side("pre-trained", 0.5, 3.0, 0.9), scratch)))
    assert "The wider basin is that of the run from scratch" in said


def test_a_basin_that_was_cut_off_is_never_called_the_narrower_one():
    one, other = side("pre-trained", 2.0, 3.0, 0.1), side("from scratch", 1.0, 3.0, 0.5)
    cut_off = (replace(other.basins[0], closed=False),) * 2
    said = " ".join(describe_verdict(both(one, replace(other, basins=cut_off))))
    assert "stays open" in said
    assert "The basin of the run from scratch could not be followed to its end" in said
    wide = (replace(one.basins[0], closed=False),) * 2
    assert "The wider basin is that of the pre-trained run" in " ".join(
        describe_verdict(both(replace(one, basins=wide), other))
    )


def test_a_run_that_learned_nothing_has_no_basin_to_compare():
    said = " ".join(
        describe_verdict(both(side("pre-trained", 2.0, 3.0, 0.1), side("from scratch", 9.0, 3.0, 0.0, ends=0.69)))
    )
    assert "The run from scratch learned next to nothing" in said
    assert "wider" not in said


def test_numbers_of_the_table():
    one = side("pre-trained", 2.0, 3.0, 0.1)
    assert steps_to(one, 0.25) == pytest.approx(15)
    assert steps_to(one, 0.9) == 0
    assert math.isnan(steps_to(one, 0.01))
    assert sharpness(0.1, [1.0, 3.0], 0.5) == LossRise(0.1, 1.5, math.sqrt(2))
    rows = {name: values for name, *values in comparison_rows(both(one, side("from scratch", 1.0, 3.0, 0.5, ends=0.3)))}
    assert rows["loss at the end"] == ["0.100", "0.300"]
    assert rows["steps to a loss of 0.300"] == ["13", "20"]
    assert rows["same basin / norm of weights"] == ["0.600", "0.300"]
    opened = replace(one, basins=(replace(one.basins[0], closed=False),) * 2)
    assert ">= 2.000" in {values[0] for _, *values in comparison_rows(both(opened, one))}


@pytest.mark.parametrize(
    ("depth", "parts"),
    [
        (1, ["all blocks"]),
        (2, ["bottom: block 1", "top: block 2", "all blocks"]),
        (4, ["bottom: blocks 1 to 2", "middle: block 3", "top: block 4", "all blocks"]),
    ],
)
def test_thirds_share_the_blocks_among_them(depth, parts):
    learner = MultiHeadModel(TransformerConfig(depth=depth, width=8, heads=2, ffn_width=16), (MLM(),), 20, 8)
    learner.init_weights(1)
    found = dict(thirds(learner))
    assert list(found) == parts
    everything = found.pop("all blocks")
    if found:
        assert frozenset().union(*found.values()) == everything
        assert sum(map(len, found.values())) == len(everything)
    start = {name: tensor.clone() for name, tensor in learner.named_weights().items()}
    end = {name: tensor + 1 for name, tensor in start.items()}
    mixed = roll_back(start, end, everything)
    assert all(torch.equal(mixed[name], (start if name in everything else end)[name]) for name in start)
    moved = layer_distances(learner, start, end)
    assert [one.name for one in moved] == ["embeddings", *(f"block {n}" for n in range(1, depth + 1)), "head"]
    assert math.hypot(*(one.moved for one in moved)) == pytest.approx(math.sqrt(sum(t.numel() for t in end.values())))


def test_a_torn_line_is_measured_again_and_no_other(tmp_path):
    kept = CachedLosses(tmp_path / "heights" / "8.jsonl")
    kept.get_or_measure("0 0", lambda: LossPoint(0.1, 0.2, 0.3))
    kept.get_or_measure("1 0", lambda: LossPoint(0.4, 0.5, 0.6))
    text = kept.path.read_text()
    kept.path.write_text(text[:-12])
    again = CachedLosses(kept.path)
    assert again.get_or_measure("0 0", lambda: pytest.fail("was measured twice")) == LossPoint(0.1, 0.2, 0.3)
    assert again.get_or_measure("1 0", lambda: LossPoint(0.7, 0.7, 0.7)).loss == 0.7
    assert CachedLosses(kept.path).get_or_measure("1 0", lambda: pytest.fail("was lost")).loss == 0.7


def test_a_view_has_the_start_and_the_end_on_its_line():
    for view in (LandscapeConfig(), LandscapeConfig(grid=4, low=-0.7, high=1.9), LandscapeConfig(grid=3)):
        assert {0.0, 1.0} <= set(view.line)
    assert {0.0, 1.0} <= set(LandscapeConfig().axis)
    assert set(LandscapeConfig(directions=Directions.RANDOM, grid=3).axis) == {-1.0, 0.0, 1.0}
    for wrong in ({"low": 0.0}, {"high": 1.0}, {"grid": 2}, {"rows": 0}):
        with pytest.raises(InputError):
            LandscapeConfig(**wrong)
