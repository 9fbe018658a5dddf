"""What a person sees while something goes on."""

import io
import re

import pytest
from rich.console import Console

from unmask.cli.ui import progress as module
from unmask.cli.ui.progress import progress, time_left


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_the_time_left_is_that_of_this_start(clock, capsys):
    """Work that goes on in the middle has not been done in no time."""
    with progress("training", 1.0) as tick:
        tick(0.5, "first")
        clock[0] += 10
        tick(0.6, "second")
    said = capsys.readouterr().err.splitlines()
    assert said == ["training ...", "training: 60 % second 40 s left", "training: done in 10 s"]


def test_nothing_done_gives_no_time():
    assert time_left(0, 10, 5) == ""
    assert time_left(5, 10, 50) == "50 s left"


def test_a_note_stays_above_the_bar(monkeypatch):
    screen = io.StringIO()
    made = Console(file=screen, force_terminal=True, width=80, highlight=False)
    monkeypatch.setattr(module, "console", lambda stderr=False: made)
    with progress("training", 1.0) as tick:
        tick(0.5, "step 1")
        tick.note("step 1: held out")
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue()).replace("\r", "\n").split("\n")
    assert "step 1: held out" in lines
