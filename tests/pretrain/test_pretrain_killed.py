"""Training can be killed at any moment; the same command goes on, and ends with the same bits.

`UNMASK_KILLS` sets how many kills at random moments there are.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pretrain_runs import Child as Forked
from pretrain_runs import Server, end_of, litter, steps_of, wait_for_lines, wait_for_step, words

from unmask.api.subprocess_jobs import Job, JobRunner
from unmask.core.rng import DrawPurpose, Key, uniform
from unmask.train.graceful_stop import MESSAGE
from unmask.train.rundir.checkpoint import list_checkpoints, read_state

KILLS = int(os.environ.get("UNMASK_KILLS", "20"))
STEPS = 24
OFTEN = ("--save-every-minutes", 0, "--num-evals", 4, "--keep-checkpoints", 2)
"""A checkpoint after every step, and a trial now and then."""


def line(data: Path, out: Path, *more: object) -> list[str]:
    """The command that is killed. It learns with dropout, and changes its stage in the middle."""
    return words(data, out, *OFTEN, *more, steps=STEPS)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, server: Server, data: Path) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    ended = server.run(*line(data, out))
    assert ended.code == 0, ended.said
    return end_of(out)


def check_end(out: Path, undisturbed: dict[str, bytes]) -> None:
    assert end_of(out) == undisturbed
    assert steps_of(out) == list(range(1, STEPS + 1))
    assert litter(out) == []


def sleep_or_end(child: Forked, seconds: float) -> bool:
    """Whether the command came to its end before its moment."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if child.poll() is not None:
            return True
        time.sleep(0.002)
    return False


def test_killed_at_random_moments(server: Server, data: Path, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    began = time.monotonic()
    assert server.run(*line(data, tmp_path / "timed")).code == 0
    whole = time.monotonic() - began
    kills = attempts = 0
    out = tmp_path / "0"
    while kills < KILLS:
        moment = float(uniform(Key.of(11, "kill", attempts).bits(DrawPurpose.PLACE, 1))[0])
        attempts += 1
        child = server.start(*line(data, out))
        if sleep_or_end(child, moment * whole / 2):
            assert child.wait() == 0, child.said()
            check_end(out, undisturbed)
            out = tmp_path / str(attempts)
        else:
            child.kill()
            kills += 1
    ended = server.run(*line(data, out))
    assert ended.code == 0, ended.said
    check_end(out, undisturbed)


def test_killed_inside_a_save(server: Server, data: Path, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    """The hidden folder of a checkpoint that is being written, or removed, is there at every kill."""
    out, kills = tmp_path / "run", 0
    while kills < 6:
        child = server.start(*line(data, out))
        after = len(steps_of(out)) + 2 if (out / "record.jsonl").exists() else 2
        while child.poll() is None:
            if any((out / "checkpoints").glob(".step-*")) and len(steps_of(out)) >= after:
                break
            time.sleep(0.001)
        if child.poll() is not None:
            break
        child.kill()
        kills += bool(litter(out))
    assert kills >= 2, "every step ends with a save"
    ended = server.run(*line(data, out))
    assert ended.code == 0, ended.said
    check_end(out, undisturbed)


def test_litter_of_kills_is_swept(server: Server, data: Path, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    out = tmp_path / "run"
    child = server.start(*line(data, out))
    wait_for_step(out, 3)
    child.kill()
    for name in (".record.jsonl.77", ".run.json.77", ".finished.json.77"):
        (out / name).write_text("half")
    (out / "checkpoints" / ".step-000000099.77").mkdir()
    with (out / "record.jsonl").open("a") as record:
        record.write('{"kind": "step", "step": 4, "lo')
    assert server.run(*line(data, out)).code == 0
    check_end(out, undisturbed)


def real(*words: str) -> subprocess.Popen[bytes]:
    quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "unmask", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=quiet,
        start_new_session=True,
    )


def test_the_real_command_killed_three_times(data: Path, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    out = tmp_path / "run"
    for step in (1, 8, 16):
        process = real(*line(data, out))
        wait_for_step(out, step)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    process = real(*line(data, out))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said.decode()
    check_end(out, undisturbed)


def test_interrupted_by_the_user(server: Server, data: Path, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    """No step is lost: the last one in the record is the one from which the run goes on."""
    out = tmp_path / "run"
    child = server.start(*line(data, out, "--save-every-minutes", 9))
    wait_for_lines(out, 3)
    os.kill(child.number, signal.SIGINT)
    assert child.wait() == 130
    assert MESSAGE in child.said()
    assert "the same command goes on" in child.said()
    assert "Traceback" not in child.said()
    assert steps_of(out)[-1] == read_state(list_checkpoints(out / "checkpoints")[-1]).progress.step
    assert server.run(*line(data, out)).code == 0
    check_end(out, undisturbed)


def test_interrupted_with_who_reads_what_it_says(data: Path, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    """Ctrl-C ends all of a pipe, as with `2>&1 | tee log`."""
    out = tmp_path / "run"
    words = shlex.join([sys.executable, "-m", "unmask", *line(data, out, "--save-every-minutes", 9)])
    quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.Popen(f"{words} 2>&1 | cat > {tmp_path / 'log'}", shell=True, env=quiet, start_new_session=True)
    wait_for_lines(out, 3)
    os.killpg(pipe.pid, signal.SIGINT)
    pipe.wait(timeout=60)
    while (out / ".lock").exists():
        time.sleep(0.05)
    assert steps_of(out)[-1] == read_state(list_checkpoints(out / "checkpoints")[-1]).progress.step
    process = real(*line(data, out))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said.decode()
    check_end(out, undisturbed)


def test_whoever_started_it_is_interrupted(data: Path, tmp_path: Path) -> None:
    """As `compare` and `evaluate` start their runs: they may end their step, too."""
    out = tmp_path / "run"

    def watch(running: object) -> None:
        if (out / "record.jsonl").exists() and 3 in steps_of(out):
            raise KeyboardInterrupt

    child = Job(tuple(words(data, out, "--num-evals", 1, steps=99_999)), out)
    with pytest.raises(KeyboardInterrupt):
        JobRunner(1, watch).run([child])
    assert steps_of(out)[-1] == read_state(list_checkpoints(out / "checkpoints")[-1]).progress.step
    assert "the same command goes on" in child.log_path.read_text(encoding="utf-8")
