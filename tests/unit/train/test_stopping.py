"""Ctrl-C while a run is trained: the step is ended and saved, and nothing is learned twice; once more ends at once."""

import os
import signal
import threading
from itertools import pairwise

import pytest
from little_course import ALONE, run_of, training

from unmask.train.budget import Steps
from unmask.train.checkpoint import checkpoints
from unmask.train.loop import train
from unmask.train.record import RECORD, read_record
from unmask.train.stopping import Stop


def losses(folder):
    return [(line["step"], line["loss"]) for line in read_record(folder / RECORD) if line["kind"] == "step"]


class Stopper:
    """Sends Ctrl-C when the line of a step is written, and remembers what it is told."""

    def __init__(self, *steps):
        self.steps, self.heard = steps, []

    def __call__(self, line):
        self.heard.append(line["kind"])
        if line["kind"] == "step" and line["step"] in self.steps:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("logistics", [{}, {"graphs": True, "queue": 2}], ids=["plain", "queued"])
def test_no_step_is_lost_and_none_is_taken_twice(tmp_path, logistics):
    usual = signal.getsignal(signal.SIGINT)
    run = run_of(**logistics)
    stoppers = [Stopper(2), Stopper(6)]
    for stopper in stoppers:
        with pytest.raises(KeyboardInterrupt):
            train(training(Steps(12)), run, ALONE, tmp_path / "stopped", [stopper])
        last = losses(tmp_path / "stopped")[-1][0]
        assert last < 12
        assert checkpoints(tmp_path / "stopped" / "checkpoints")[-1].name == f"step-{last:09d}"
        assert signal.getsignal(signal.SIGINT) is usual
    train(training(Steps(12)), run, ALONE, tmp_path / "stopped")
    train(training(Steps(12)), run, ALONE, tmp_path / "whole")
    assert losses(tmp_path / "stopped") == losses(tmp_path / "whole")
    steps = [step for step, _ in losses(tmp_path / "stopped")]
    assert all(later == step + 1 for step, later in pairwise(steps))
    assert [stopper.heard.count("stopping") for stopper in stoppers] == [1, 1]


def test_once_more_stops_at_once(tmp_path):
    def twice(line):
        if line["kind"] in ("step", "stopping"):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(training(Steps(12)), run_of(), ALONE, tmp_path, [twice])
    assert not checkpoints(tmp_path / "checkpoints")


def test_a_run_that_is_over_when_it_is_stopped_is_whole(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(training(Steps(4)), run_of(), ALONE, tmp_path, [Stopper(4)])
    assert [path.name for path in checkpoints(tmp_path / "checkpoints")] == ["step-000000004"]


def test_who_ignores_ctrl_c_is_not_stopped(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        train(training(Steps(4)), run_of(), ALONE, tmp_path, [Stopper(2)])
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(losses(tmp_path)) == 4


def test_another_thread_cannot_listen_and_trains_all_the_same(tmp_path):
    found = []

    def work():
        with Stop.heard(lambda: None) as stop:
            found.append(stop.wished)
        train(training(Steps(2)), run_of(), ALONE, tmp_path)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
    assert len(losses(tmp_path)) == 2
