"""The `prepare` command from outside: as a user starts it, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest

from unmask.text.embedded import peoples_daily

Unmask = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def unmask() -> Unmask:
    """Run `unmask` to its end and return what it said."""

    def run(*words: object, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(command(*words), input=stdin, capture_output=True, cwd=cwd, check=False, timeout=240)
        return subprocess.CompletedProcess(
            ended.args, ended.returncode, ended.stdout.decode("utf-8"), ended.stderr.decode("utf-8")
        )

    return run


@pytest.fixture(scope="session")
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Start `unmask` in a process group of its own, to be killed with everything it started."""

    def begin(*words: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )

    return begin


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


def write_news(path: Path, characters: int) -> Path:
    """The first articles of the embedded corpus."""
    texts = []
    seen = 0
    for document in takewhile(lambda _: seen < characters, peoples_daily()):
        texts.append(document.text)
        seen += len(document.text)
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return path


def command(*words: object) -> list[str]:
    """The command line of `unmask`."""
    return [sys.executable, "-m", "unmask", *map(str, words)]


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, whatever it is called, but for the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {os.fspath(path.relative_to(folder)): path.read_bytes() for path in files}
