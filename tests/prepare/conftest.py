"""The `prepare` command from outside: as a user starts it, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prepare_runs import Start, Unmask, command, write_news


@pytest.fixture(scope="session")
def unmask() -> Unmask:
    """Run `unmask` to its end and return what it said."""

    def run(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(command(*words), input=stdin, capture_output=True, cwd=cwd, check=False, timeout=240)
        return subprocess.CompletedProcess(
            ended.args, ended.returncode, ended.stdout.decode("utf-8"), ended.stderr.decode("utf-8")
        )

    return run


@pytest.fixture
def start() -> Iterator[Start]:
    """Start `unmask` in a process group of its own, to be killed with everything it started."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*words: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture(scope="session")
def news(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a megabyte of real text and more: at least three shards."""
    return write_news(tmp_path_factory.mktemp("news") / "news.txt", 320_000)


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory, unmask: Unmask) -> Path:
    """A small trained vocabulary, so that most tests need not train one."""
    folder = tmp_path_factory.mktemp("vocabulary")
    text = write_news(folder / "news.txt", 60_000)
    ended = unmask("prepare", text, "--vocab-size", 2500, "--out", folder / "data", "-j", 1)
    assert ended.returncode == 0, ended.stderr
    return folder / "data" / "tokenizer.json"
