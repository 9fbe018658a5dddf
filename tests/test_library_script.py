"""The example script as a test, and beside it the commands that do the same."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "library.py"
FEW = ("--set", "stages.*.max_length=32", "--set", "stages.*.batch_size=8", "--num-evals", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder in which the script has run."""
    made = tmp_path_factory.mktemp("library")
    runpy.run_path(str(EXAMPLE))["main"](made)
    return made


def _unmask(folder: Path, *words: str) -> str:
    quiet = {**os.environ, "TERM": "dumb", "COLUMNS": "100"}
    line = [sys.executable, "-m", "unmask", *words]
    done = subprocess.run(line, capture_output=True, text=True, cwd=folder, env=quiet, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_run_made_from_python_is_a_run(folder):
    assert {"run.json", "tokenizer.json", "record.jsonl", "finished.json"} <= {
        one.name for one in (folder / "run").iterdir()
    }
    assert "is finished already" in _unmask(
        folder, "pretrain", "wwm", "--data", "data", "--out", "run", "--size", "tiny", "--steps", "4", *FEW
    )
    _unmask(folder, "report", "run")


def test_the_commands_do_the_same(folder):
    _unmask(folder, "prepare", "news.txt", "--for", "wwm", "--vocab-size", "1500", "--out", "data2", "-j", "1")
    words = ("--data", "data2", "--out", "run2", "--size", "tiny", "--steps", "4")
    _unmask(folder, "pretrain", "wwm", *words, *FEW)
    files = ("--train-file", "train.jsonl", "--dev-file", "dev.jsonl")
    method = ("--method", "lora", "--lora-rank", "2", "--epochs", "1", "--max-length", "32")
    _unmask(folder, "finetune", "run2", *files, *method, "--out", "tuned2")
    ours, theirs = (
        json.loads((folder / name / "task.json").read_text(encoding="utf-8")) for name in ("tuned", "tuned2")
    )
    assert ours["metrics"] == theirs["metrics"]
    filled = json.loads(_unmask(folder, "fill-mask", "run2", "今天天气真[MASK]", "--json").splitlines()[-1])
    assert len(filled["candidates"][0]) == 5
    assert "checked: transformers" in _unmask(folder, "export", "run2", "exported2")
