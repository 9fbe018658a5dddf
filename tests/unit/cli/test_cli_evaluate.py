"""A suite: every task with every seed, one table; what is finished is kept, and never made twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from folder_net import BAD, GOOD, lines, network

from unmask.core.errors import InputError
from unmask.evaluation.suite import plan_runs
from unmask.evaluation.suite_file import read_suite

QUICK = ("--seeds", "1", "--epochs", "1", "--batch-size", "8", "--device", "cpu", "--max-parallel", "2")


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    """A network and a suite of two tasks."""
    monkeypatch.chdir(tmp_path)
    network(Path("net"))
    Path("tasks").mkdir()
    for name, labels in (("mood", "好坏"), ("number", "01")):
        for part, numbers in (("train", range(24)), ("dev", range(30, 38))):
            rows = [{"text": f"{(GOOD, BAD)[i % 2]}{i}", "label": labels[i % 2]} for i in numbers]
            lines(f"tasks/{name}.{part}.jsonl", rows)
    lines("tasks/mood.test.jsonl", [{"text": GOOD}, {"text": BAD}])
    Path("tasks/suite.toml").write_text('[number]\nmetric = "matthews"\n', encoding="utf-8")


def evaluate(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "unmask", "evaluate", "net", "--suite", "tasks", "--out", "out", *QUICK, *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finished() -> dict[str, int]:
    """Every finished run and when it was finished."""
    return {str(path): path.stat().st_mtime_ns for path in sorted(Path("out").glob("runs/*/*/finished.json"))}


def test_a_killed_suite_loses_no_finished_run_and_repeats_none():
    process = evaluate()
    deadline = time.monotonic() + 120
    while not finished() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = finished()
    assert before
    out, beside = (process := evaluate()).communicate(timeout=300)
    assert process.returncode == 0, beside
    after = finished()
    assert len(after) == 4  # two tasks, with what the network knows and without
    assert {name: after[name] for name in before} == before
    for word in ("mood", "number", "pre-trained", "from scratch", "chance", "Matthews"):
        assert word in out
    told = json.loads(Path("out/results.json").read_text(encoding="utf-8"))["tasks"]
    assert [(one["task"], one["metric"], len(one["pretrained"]), len(one["scratch"])) for one in told] == [
        ("mood", "accuracy", 1, 1),
        ("number", "matthews", 1, 1),
    ]
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert page.count("<circle") == 4
    assert "http" not in page.replace("http://www.w3.org", "")
    answers = Path("out/submissions/mood.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["prediction"] for line in answers} <= {"好", "坏"}
    assert len(answers) == 2


def test_a_run_that_fails_stops_the_suite_with_its_sentence():
    lines("tasks/mood.dev.jsonl", [{"text": "x", "label": "neither"}])
    _, beside = (process := evaluate()).communicate(timeout=300)
    assert process.returncode == 2
    assert "mood.dev.jsonl:1: the label 'neither' does not occur" in beside


def test_what_is_no_suite_is_refused():
    with pytest.raises(InputError, match="is no folder"):
        read_suite(Path("nowhere"))
    with pytest.raises(InputError, match="holds no task"):
        read_suite(Path("net"))
    with pytest.raises(InputError, match=r"has no task 'x'\. It has: mood, number"):
        read_suite(Path("tasks"), ["x"])
    lines("tasks/alone.train.jsonl", [{"text": GOOD, "label": "1"}])
    with pytest.raises(InputError, match=r"alone\.train\.jsonl has no alone\.dev\.\* with it"):
        read_suite(Path("tasks"))
    Path("tasks/alone.train.jsonl").unlink()
    for content, sentence in (
        ("[moood]\n", "there is no task 'moood'"),
        ("[mood]\nepoch = 3\n", "an unknown option 'epoch'"),
        ("[mood\n", "cannot be read"),
    ):
        Path("tasks/suite.toml").write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=sentence):
            read_suite(Path("tasks"))


def test_options_of_a_task_come_after_those_of_all():
    Path("tasks/suite.toml").write_text("[all]\nepochs = 2\nlr = 1e-3\n[mood]\nepochs = 5\n", encoding="utf-8")
    mood, number = read_suite(Path("tasks"))
    assert mood.option_args() == ["--epochs", "5", "--lr", "0.001"]
    assert number.option_args() == ["--epochs", "2", "--lr", "0.001"]
    attempts = plan_runs((mood, number), 2, scratch=True)
    assert len({attempt.folder_name for attempt in attempts}) == len(attempts) == 8
    assert "--from-scratch" in attempts[1].command_args(Path("net"), Path("out"), ())
