"""Preparing can be killed at any moment; the same command goes on, and ends with the same bytes.

`UNMASK_KILLS` sets how many kills there are for each number of processes.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from prepare_runs import Start, Unmask, content

from unmask.core.rng import DrawPurpose, Key, uniform
from unmask.data.corpus.corpus_folder import lock_corpus

KILLS = int(os.environ.get("UNMASK_KILLS", "20"))


def words(news: Path, out: Path, processes: int) -> tuple[object, ...]:
    """The command that is killed: it learns a vocabulary, then phrases, then writes shards."""
    return "prepare", news, "--vocab-size", 2500, "--units", "phrase", "--out", out, "-j", processes


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, news: Path, unmask: Unmask) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed") / "data"
    ended = unmask(*words(news, out, 1))
    assert ended.returncode == 0, ended.stderr
    found = content(out)
    assert sum(name.endswith("ids.npy") for name in found) > 2  # a single shard would prove little
    return found


def seconds_of_a_run(start: Start, news: Path, out: Path, processes: int) -> float:
    began = time.monotonic()
    assert start(*words(news, out, processes)).wait() == 0
    return time.monotonic() - began


def whole(folder: Path) -> dict[str, bytes]:
    """What lies in a folder under its final name. Unfinished things have names that begin with a dot."""
    return {name: data for name, data in content(folder).items() if not re.search(r"(^|/)\.", name)}


@pytest.mark.parametrize("processes", [1, 2])
def test_killed_at_random_moments_and_finished(
    processes: int, start: Start, unmask: Unmask, news: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    seconds = seconds_of_a_run(start, news, tmp_path / "timed", processes)
    assert content(tmp_path / "timed") == undisturbed
    kills = attempts = 0
    out = tmp_path / "0"
    while kills < KILLS:
        moment = float(uniform(Key.of(20, "kill", processes, attempts).bits(DrawPurpose.PLACE, 1))[0]) * seconds
        attempts += 1
        process = start(*words(news, out, processes))
        try:
            assert process.wait(moment) == 0  # it went on from earlier kills and was finished before its moment came
            assert content(out) == undisturbed
            out = tmp_path / str(attempts)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            assert whole(out).items() <= undisturbed.items() if out.exists() else True
    ended = unmask(*words(news, out, processes))
    assert ended.returncode == 0, ended.stderr
    assert content(out) == undisturbed


def wait_for(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stderr is not None
    for said in process.stderr:
        if said.startswith(line):
            return
    pytest.fail(f"the command ended without saying {line!r}")


def wait_until_gone(group: int) -> None:
    """Wait until no process of a group is left; a zombie of ours must have been waited for before."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    pytest.fail("worker processes outlived the command by 20 seconds")


@pytest.mark.parametrize("processes", [1, 2])
def test_killed_in_every_phase(
    processes: int, start: Start, unmask: Unmask, news: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "data"
    for phase in (b"training a tokenizer", b"learning phrases", b"preparing"):
        process = start(*words(news, out, processes))
        wait_for(process, phase)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert whole(out).items() <= undisturbed.items()
        assert not (out / "manifest.json").exists()
    for litter in (out / "shards" / ".00001.77", out / ".tokenizer.json.77"):
        litter.parent.mkdir(exist_ok=True)
        litter.mkdir() if litter.parent.name == "shards" else litter.write_text("half")
    assert unmask(*words(news, out, processes)).returncode == 0
    assert content(out) == undisturbed
    assert not [path for path in out.rglob(".*") if path.name != ".lock"]


def test_workers_end_with_the_command(
    start: Start, unmask: Unmask, news: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "data"
    process = start(*words(news, out, 2))
    wait_for(process, b"preparing")
    time.sleep(0.3)
    process.kill()  # the command alone; its workers are left without one
    process.wait()
    assert unmask(*words(news, out, 2)).returncode == 0  # at once, while they may still be at work
    wait_until_gone(process.pid)
    assert content(out) == undisturbed


@pytest.mark.parametrize("processes", [1, 2])
def test_interrupted_by_the_user(
    processes: int, start: Start, unmask: Unmask, news: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "data"
    process = start(*words(news, out, processes))
    wait_for(process, b"preparing")
    os.killpg(process.pid, signal.SIGINT)  # Ctrl-C reaches every process of the terminal's group
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"the same command goes on" in said
    assert b"Traceback" not in said
    wait_until_gone(process.pid)
    assert unmask(*words(news, out, processes)).returncode == 0
    assert content(out) == undisturbed


def test_one_command_at_a_time(unmask: Unmask, news: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    with lock_corpus(out):
        ended = unmask(*words(news, out, 1))
        assert ended.returncode == 2
        assert f"Another process is preparing {out} right now" in ended.stderr
        assert not (out / "work.json").exists()
    assert unmask(*words(news, out, 1)).returncode == 0
