"""A training step of BERT on a CPU enters at most 28 files of the package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_FILES = 28


@pytest.mark.slow
def test_a_step_enters_few_files() -> None:
    command = [sys.executable, str(ROOT / "tools" / "trace_step.py")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"^(\d+) files, \d+ functions, \d+ calls$", printed, re.MULTILINE)
    assert found, printed
    assert int(found[1]) <= MAX_FILES, printed
