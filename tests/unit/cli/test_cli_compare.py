"""Members compared: every network and every tune once, one table; what is finished is kept, and never made twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import accumulate
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unmask.cli.main import app
from unmask.core.errors import UserError
from unmask.data.text.sample_corpora import peoples_daily
from unmask.lab.compare.spec import ComparisonSpec
from unmask.train.rundir.run_writer import read_record

LINE = (
    *(
        "compare",
        "bert",
        "wwm",
        "--size",
        "tiny",
        "--preset",
        "short",
        "--data",
        "data",
        "--suite",
        "tasks",
        "--out",
        "lab",
    ),
    *(
        "--batch-size",
        "4",
        "--epochs",
        "1",
        "--finetune-batch-size",
        "8",
        "--device",
        "cpu",
        "--max-finetunes",
        "2",
        "--seeds",
        "1",
    ),
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A little text, prepared, and a suite of one task."""
    folder = tmp_path_factory.mktemp("compare")
    articles = [document.text for document in peoples_daily()]
    some = [text for text, size in zip(articles, accumulate(map(len, articles)), strict=True) if size < 20_000]
    (folder / "text.txt").write_text("\n\n".join(some), encoding="utf-8")
    words = ["prepare", folder / "text.txt", "--for", "wwm", "--vocab-size", "900", "--out", folder / "data", "-j", "1"]
    assert CliRunner().invoke(app, list(map(str, words))).exit_code == 0
    (folder / "tasks").mkdir()
    for part, numbers in (("train", range(24)), ("dev", range(30, 38))):
        rows = [{"text": f"{('很好', '不来了')[i % 2]}{i}", "label": "好坏"[i % 2]} for i in numbers]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"tasks/mood.{part}.jsonl").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path, prepared):
    """A folder of its own, with the text and the suite in reach."""
    monkeypatch.chdir(tmp_path)
    for name in ("data", "tasks"):
        Path(name).symlink_to(prepared / name)


def compare(*words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    command = [sys.executable, "-m", "unmask", *LINE, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finished() -> dict[str, int]:
    """Every finished run and when it was finished."""
    return {str(path): path.stat().st_mtime_ns for path in sorted(Path("lab").rglob("finished.json"))}


def test_a_killed_comparison_loses_no_finished_run_and_repeats_none():
    process = compare("--steps", "4", "--points", "2")
    deadline = time.monotonic() + 120
    while not finished() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = finished()
    assert before
    out, beside = (process := compare("--steps", "4", "--points", "2")).communicate(timeout=280)
    assert process.returncode == 0, beside
    after = finished()
    # Two networks, each tuned at its end and half way; one shape is also tuned from nothing.
    assert len(after) == 2 + 4 + 1
    assert {name: after[name] for name in before} == before
    assert max(len(line) for line in out.splitlines() if line.startswith(("member", "bert", "wwm", "guess"))) <= 80
    for word in ("bert", "wwm", "from scratch", "guess", "accuracy", "FLOPs", "mlm"):
        assert word in out
    assert "All members use the WordPiece vocabulary of data" in beside
    _check_results()
    page = Path("lab/compare.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 9  # loss, right answers and the task, over tokens, time and operations
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "wwm against bert" in page


def test_who_stops_a_comparison_sees_what_there_is():
    process = compare("--steps", "4")
    deadline = time.monotonic() + 120
    while not finished() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, beside = process.communicate(timeout=60)
    assert process.returncode == 130, beside
    assert "the same command goes on" in beside
    assert [line.split()[0] for line in out.splitlines() if " mlm" in line][:1] == ["bert"]
    assert [one["name"] for one in json.loads(Path("lab/compare.json").read_text(encoding="utf-8"))["members"]] == [
        "bert",
        "wwm",
    ]


def test_a_round_has_every_member_and_as_many_seeds_as_are_trained_at_once():
    contest = ComparisonSpec(
        **dict.fromkeys(("changes", "tasks", "finetune_args"), ()),
        **dict.fromkeys(("device", "precision"), "auto"),
        **dict.fromkeys(("batch_size", "lr"), None),
        members=("bert", "wwm"),
        data=Path("data"),
        budget={},
        seeds=3,
        points=1,
        scratch="none",
        size="tiny",
        preset="short",
        heldout_fraction=0.1,
        compile=False,
        cuda_graphs="off",
        no_kernels=False,
    )
    told = {at: [[(one.arm.name, one.seed) for one in some] for some in contest.rounds(at)] for at in (1, 3, 4)}
    assert told[1] == told[3] == [[("bert", seed), ("wwm", seed)] for seed in range(3)]
    assert told[4] == [[*told[1][0], *told[1][1]], told[1][2]]


def _check_results() -> None:
    told = json.loads(Path("lab/compare.json").read_text(encoding="utf-8"))
    assert [task["name"] for task in told["tasks"]] == ["mood"]
    assert [one["name"] for one in told["members"]] == ["bert", "wwm"]
    for one, scratched in zip(told["members"], (True, False), strict=True):
        (run,) = one["runs"]
        record = read_record(Path(f"lab/members/{one['name']}-0/network/record.jsonl"))
        *_, last = (line for line in record if line["kind"] == "step")
        spent = run["curve"]["points"][-1]["spent"]
        assert spent["step"] == 4
        assert spent["tokens"] == last["tokens"] > 0
        assert 0 < run["points"][0]["spent"]["flops"] < spent["flops"]
        assert run["points"][0]["spent"]["step"] == 2
        assert 0 <= run["scores"]["mood"] <= 1
        assert bool(run["scratch"]) is scratched


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "A run needs one budget: --steps, --tokens, --hours or --flops; found none of them."),
        (("--steps", "3", "--tokens", "90"), "found 3 steps and 90 tokens"),
        (("--flops", "1"), "is not enough for one step of bert"),
        (("berta", "--steps", "3"), "There is no member 'berta'"),
        (("bert", "--steps", "3"), "bert was named twice"),
        (("--steps", "3", "--set", "roberta:masking=DynamicMasking"), "'roberta' is not compared here"),
        (("--steps", "3", "--set", "bert:network.deep=3"), "network"),
        (("--hours", "1", "--max-pretrainings", "2"), "the same time on this machine"),
        (("--steps", "3", "--suite", "data"), "holds no task"),
        (("--steps", "3", "--data", "tasks"), "tasks"),
        (("--steps", "3", "--method", "all"), "all"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_a_folder_is_made(words, sentence):
    ended = CliRunner().invoke(app, [*LINE, *words])
    assert isinstance(ended.exception, UserError), ended.output
    assert sentence in str(ended.exception)
    assert not Path("lab").exists()


def test_a_dry_run_measures_and_makes_nothing():
    ended = CliRunner().invoke(app, [*LINE, "--flops", "1e10", "--seeds", "2", "--dry-run"])
    assert ended.exit_code == 0, ended.output
    assert "4 of 4 to pre-train" in ended.output
    assert "6 of 6 (tasks: mood)" in ended.output
    assert "about" in ended.output
    assert not Path("lab").exists()


@pytest.mark.parametrize("command", ["compare", "evaluate"])
def test_a_mistake_in_a_task_shows_before_anything_is_made(command, prepared):
    Path("odd").mkdir()
    for part in ("train", "dev"):
        Path(f"odd/mood.{part}.csv").write_text("text,label\n很好,1\n不来了,\n", encoding="utf-8")
    words = ["--suite", "odd", "--out", "lab"]
    compared = ["compare", "bert", "--size", "tiny", "--data", "data", "--steps", "4", *words]
    done = CliRunner().invoke(app, compared if command == "compare" else ["evaluate", "nowhere", *words])
    assert isinstance(done.exception, UserError)
    assert "odd/mood.train.csv:3" in str(done.exception)
    assert not Path("lab").exists()


@pytest.mark.parametrize(
    ("wished", "said"),
    [
        ('task_type = "sorting"', "There is no task type 'sorting'. Choose one of: auto, classification"),
        ('pooling = "last"', "TaskOptions.pooling needs one of first, mean, max, attention, found 'last'"),
    ],
)
def test_a_suite_that_wishes_for_what_nobody_knows_is_refused(wished, said):
    Path("odd").mkdir()
    for part in ("train", "dev"):
        Path(f"odd/mood.{part}.csv").write_text("text,label\n很好,1\n不来了,0\n", encoding="utf-8")
    Path("odd/suite.toml").write_text(f"[mood]\n{wished}\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["evaluate", "nowhere", "--suite", "odd", "--out", "lab"])
    assert f"suite.toml: [mood]: {said}" in str(done.exception)
