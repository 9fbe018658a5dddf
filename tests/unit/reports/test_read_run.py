"""Reading a run folder: what is whole is read, what a kill has undone is forgotten, what is damaged is named."""

import json

import pytest
from runs import record, sample, start, step, trial, write_run

from unmask.core.errors import InputError
from unmask.reports.read_run import read_run


def test_numbers_become_series(tmp_path):
    run = read_run(write_run(tmp_path, record(100, 25)))
    assert run.objectives == ("mlm", "next")
    assert run.training["loss.mlm"].step.tolist() == list(range(1, 101))
    assert run.training["loss.mlm"].tokens[-1] == 409_600
    assert run.evals["accuracy.next"].step.tolist() == [0, 25, 50, 75, 100]
    assert (run.num_steps, run.num_tokens, run.last_value("seconds"), run.is_finished) == (100, 409_600, 80.0, True)
    assert run.lengths == ((1, 128), (91, 512))


def test_steps_that_a_kill_undid_are_forgotten(tmp_path):
    first = [start(), trial(0), *(step(n, noise=1.0) for n in range(1, 9)), trial(8), sample(8)]
    again = [start(4), *(step(n) for n in range(5, 7))]
    run = read_run(write_run(tmp_path, first + again, finished=False))
    assert run.resume_steps == (4,)
    assert run.training["loss.mlm"].step.tolist() == [1, 2, 3, 4, 5, 6]
    assert run.training["loss.mlm"].value[-1] == step(6)["loss"]["mlm"]
    assert run.evals["loss.mlm"].step.tolist() == [0]
    assert run.samples == ()
    assert run.num_steps == 6


def test_a_number_that_is_not_finite_is_no_point_of_a_curve(tmp_path):
    broken = step(2) | {"grad_norm": float("nan"), "loss": {"mlm": float("inf")}}
    run = read_run(write_run(tmp_path, [start(), step(1), broken]))
    assert len(run.training["grad_norm"]) == len(run.training["loss.mlm"]) == 1
    assert len(run.training["lr"]) == 2


def test_a_torn_last_line_is_skipped(tmp_path):
    write_run(tmp_path, record(10, 5))
    with (tmp_path / "record.jsonl").open("a") as file:
        file.write(json.dumps(step(11))[:40])
    assert read_run(tmp_path).num_steps == 10


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "step", "st',
        "[]",
        "7",
        '{"kind": "step"}',
        '{"kind": "step", "step": "soon"}',
        '{"kind": "step", "step": 3, "loss": {"mlm": "low"}}',
        '{"kind": "samples", "step": 3, "lines": [{"shown": [], "truth": {}, "guesses": {"2": []}}]}',
        '{"kind": "samples", "step": 3, "lines": [7]}',
    ],
)
def test_a_damaged_line_is_named(tmp_path, line):
    lines = [json.dumps(one) for one in record(4, 2)]
    write_run(tmp_path)
    (tmp_path / "record.jsonl").write_text("\n".join([*lines[:3], line, *lines[3:]]) + "\n")
    with pytest.raises(InputError, match=r"record\.jsonl:4 is damaged"):
        read_run(tmp_path)


def test_kinds_of_a_later_version_are_left_alone(tmp_path):
    run = read_run(write_run(tmp_path, [*record(4, 2), {"kind": "weather", "step": 4, "sun": True}]))
    assert run.num_steps == 4


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no run: there is no run\.json"):
        read_run(tmp_path / "nowhere")
    write_run(tmp_path, [start()])
    with pytest.raises(InputError, match="no step is finished"):
        read_run(tmp_path)
    (tmp_path / "record.jsonl").unlink()
    with pytest.raises(InputError, match="has no record yet"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(InputError, match="should hold a JSON object"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        read_run(tmp_path)
