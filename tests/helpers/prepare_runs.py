"""What the tests of `prepare` share: real text, the command line, and everything in a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

from unmask.data.text.sample_corpora import peoples_daily

Unmask = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[bytes]"]


def write_news(path: Path, characters: int) -> Path:
    """The first articles of the embedded corpus."""
    articles = [document.text for document in peoples_daily()]
    before = accumulate(map(len, articles), initial=0)
    some = [text for text, seen in zip(articles, before, strict=False) if seen < characters]
    path.write_text("\n\n".join(some) + "\n", encoding="utf-8")
    return path


def command(*words: object) -> list[str]:
    """The command line of `unmask`."""
    return [sys.executable, "-m", "unmask", *map(str, words)]


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, whatever it is called, but for the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {os.fspath(path.relative_to(folder)): path.read_bytes() for path in files}
