"""Who is compared: changes reach the members they name, and no two networks share a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unmask.core.errors import InputError
from unmask.lab.compare.arms import arm_runs, parse_arms
from unmask.lab.compare.curves import evals_for, fraction_done, point_steps


def test_a_change_with_a_name_is_for_that_member_alone():
    bert, own, form = parse_arms(
        ("bert", "mine.py:other", "ernie:text"),
        ("renew.count=1", "bert:trunk.depth=3", "mine.py:other:trunk.depth=4", "ernie:text:trunk.depth=5"),
    )
    assert bert.changes == ("renew.count=1", "trunk.depth=3")
    assert own.changes == ("renew.count=1", "trunk.depth=4")
    assert form.changes == ("renew.count=1", "trunk.depth=5")
    assert [arm.name for arm in (bert, own, form)] == ["bert", "other", "ernie-text"]
    assert own.args() == ["mine.py:other", "--set", "renew.count=1", "--set", "trunk.depth=4"]


def test_a_change_for_somebody_else_and_a_member_named_twice_are_refused():
    with pytest.raises(InputError, match=r"'roberta' is not compared here\. Take one of: bert, wwm"):
        parse_arms(("bert", "wwm"), ("roberta:trunk.depth=3",))
    with pytest.raises(InputError, match="bert was named twice"):
        parse_arms(("bert", "one.py:bert"), ())


def test_seeds_come_outermost_and_every_network_has_a_place_of_its_own():
    found = arm_runs(parse_arms(("bert", "wwm"), ()), 2)
    assert [(entry.arm.name, entry.seed) for entry in found] == [("bert", 0), ("wwm", 0), ("bert", 1), ("wwm", 1)]
    assert len({entry.folder for entry in found}) == 4
    words = found[3].pretrain_args(Path("lab"), ["--steps", "3"])
    assert words == ["pretrain", "wwm", "--out", "lab/members/wwm-1/network", "--seed", "1", "--steps", "3"]


def test_every_point_is_a_trial():
    for points in range(1, 25):
        trials = evals_for(points, 20)
        assert trials >= 20
        assert trials % points == 0


def test_a_point_is_the_first_trial_that_has_used_up_its_share():
    steps = [{"kind": "step", "step": step, "progress": round(step / 7, 6)} for step in range(1, 8)]
    trials = [{"kind": "eval", "step": step} for step in range(8)]
    assert point_steps([*steps, *trials], 1) == ()
    assert point_steps([*steps, *trials], 2) == (4,)
    assert point_steps([*steps, *trials], 7) == (1, 2, 3, 4, 5, 6)


def test_how_much_is_done_is_read_from_the_end_of_a_record(tmp_path):
    assert fraction_done(tmp_path) == 0
    steps = "".join(json.dumps({"kind": "step", "step": step, "progress": step / 8}) + "\n" for step in range(1, 4))
    sample = json.dumps({"kind": "samples", "lines": ["很" * 3000]})
    (tmp_path / "record.jsonl").write_text(f'{steps}{sample}\n{{"kind": "st', encoding="utf-8")
    assert fraction_done(tmp_path) == 3 / 8
    (tmp_path / "finished.json").write_text("{}", encoding="utf-8")
    assert fraction_done(tmp_path) == 1
