"""The command: where the page lies, and what is said of folders that are no runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unmask.cli.main import app, main

LINES = [
    {"kind": "start", "step": 0, "device": "cpu"},
    {"kind": "step", "step": 1, "loss": {"mlm": 8.0}, "accuracy": {"mlm": 0.0}, "tokens": 100, "seconds": 1.0},
    {"kind": "eval", "step": 1, "loss": {"mlm": 7.5}, "accuracy": {"mlm": 0.1}, "tokens": 100},
]


@pytest.fixture(autouse=True)
def runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "run.json").write_text('{"format": 1, "kind": "pretrain"}')
        Path(name, "record.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))


def test_the_page_of_a_run_lies_in_its_folder():
    done = CliRunner().invoke(app, ["report", "a"])
    assert done.exit_code == 0
    assert "a/report.html is written" in done.output
    assert "7.500" in Path("a/report.html").read_text(encoding="utf-8")


def test_several_runs_are_compared_in_a_page_beside_them():
    assert "report.html is written" in CliRunner().invoke(app, ["report", "a", "b"]).output
    assert "2 runs" in Path("report.html").read_text(encoding="utf-8")
    CliRunner().invoke(app, ["report", "a", "b", "--out", "c.html"])
    assert Path("c.html").read_text(encoding="utf-8") == Path("report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda: Path("a/run.json").unlink(), "a holds no run"),
        (lambda: Path("a/record.jsonl").unlink(), "a has no record yet"),
        (lambda: Path("a/record.jsonl").write_text("oops\n"), "a/record.jsonl:1 is damaged"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_code_2(monkeypatch, capsys, damage, said):
    damage()
    monkeypatch.setattr(sys, "argv", ["unmask", "report", "a"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith(f"unmask: {said}")
    assert not Path("a/report.html").exists()
