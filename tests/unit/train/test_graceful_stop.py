"""Ctrl-C while a run is trained: the step is ended and saved, and nothing is learned twice; once more ends at once."""

import os
import signal
import threading
from itertools import pairwise

import pytest
from little_course import ALONE, run_of, training

from unmask.train import graceful_stop
from unmask.train.graceful_stop import GracefulStop
from unmask.train.loop import train
from unmask.train.rundir.checkpoint import list_checkpoints
from unmask.train.rundir.run_writer import RECORD, read_record
from unmask.train.schedule import StepBudget


def losses(folder):
    return [(line["step"], line["loss"]) for line in read_record(folder / RECORD) if line["kind"] == "step"]


class Stopper:
    """Sends Ctrl-C when the line of a step is written."""

    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, line):
        if line["kind"] == "step" and line["step"] in self.steps:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("logistics", [{}, {"cuda_graphs": True, "max_in_flight": 2}], ids=["plain", "queued"])
def test_no_step_is_lost_and_none_is_taken_twice(tmp_path, logistics):
    usual = signal.getsignal(signal.SIGINT)
    run = run_of(**logistics)
    for step in (2, 6):
        with pytest.raises(KeyboardInterrupt):
            train(training(StepBudget(12)), run, ALONE, tmp_path / "stopped", [Stopper(step)])
        last = losses(tmp_path / "stopped")[-1][0]
        assert last < 12
        assert list_checkpoints(tmp_path / "stopped" / "checkpoints")[-1].name == f"step-{last:09d}"
        assert signal.getsignal(signal.SIGINT) is usual
    train(training(StepBudget(12)), run, ALONE, tmp_path / "stopped")
    train(training(StepBudget(12)), run, ALONE, tmp_path / "whole")
    assert losses(tmp_path / "stopped") == losses(tmp_path / "whole")
    steps = [step for step, _ in losses(tmp_path / "stopped")]
    assert all(later == step + 1 for step, later in pairwise(steps))


def test_once_more_stops_at_once(tmp_path, monkeypatch, capfd):
    """Not one that comes with the first, though: a terminal tells all of a group, and so may who started them."""

    def stop(line):
        if line["kind"] == "step":
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGINT)
            heard.append(line["step"])
            monkeypatch.setattr(graceful_stop, "_REPEAT_SECONDS", 0.0)
            os.kill(os.getpid(), signal.SIGINT)

    heard = []
    with pytest.raises(KeyboardInterrupt):
        train(training(StepBudget(12)), run_of(), ALONE, tmp_path, [stop])
    assert heard == [1]
    assert not list_checkpoints(tmp_path / "checkpoints")
    assert capfd.readouterr().err.count(graceful_stop.MESSAGE) == 1


def test_stopped_in_the_first_trial_nothing_is_learned(tmp_path):
    def stop(line):
        if line["kind"] == "eval":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(training(StepBudget(12)), run_of(), ALONE, tmp_path, [stop])
    assert not losses(tmp_path)


@pytest.mark.parametrize("gone", [BrokenPipeError(), SystemExit(1)], ids=["plain", "rich"])
def test_where_nobody_looks_on_any_more_the_step_is_saved(tmp_path, gone):
    def show(line):
        if line["kind"] == "step" and line["step"] == 3:
            raise gone

    with pytest.raises(KeyboardInterrupt):
        train(training(StepBudget(12)), run_of(), ALONE, tmp_path, [show])
    last = losses(tmp_path)[-1][0]
    assert 3 <= last <= 4
    assert list_checkpoints(tmp_path / "checkpoints")[-1].name == f"step-{last:09d}"


def test_a_run_that_is_over_when_it_is_stopped_is_whole(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(training(StepBudget(4)), run_of(), ALONE, tmp_path, [Stopper(4)])
    assert [path.name for path in list_checkpoints(tmp_path / "checkpoints")] == ["step-000000004"]


def test_who_ignores_ctrl_c_is_not_stopped(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        train(training(StepBudget(4)), run_of(), ALONE, tmp_path, [Stopper(2)])
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(losses(tmp_path)) == 4


def test_another_thread_cannot_listen_and_trains_all_the_same(tmp_path):
    found = []

    def work():
        with GracefulStop.installed(verbose=True) as stop:
            found.append(stop.requested)
        train(training(StepBudget(2)), run_of(), ALONE, tmp_path)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
    assert len(losses(tmp_path)) == 2
