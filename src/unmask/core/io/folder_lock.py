"""Folder locks: one process at a time in a folder.

The operating system releases a lock when its process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Container, Iterator
from pathlib import Path

from unmask.core.errors import CorpusError, InputError
from unmask.core.io.atomic import disk_errors, is_temp_path

LOCK = ".lock"


@contextlib.contextmanager
def folder_lock(folder: Path, action: str) -> Iterator[None]:
    """Lock a folder for a block. A missing folder is created, and removed again if it stays empty."""
    with disk_errors(folder):
        _make_folder(folder)
        lock = (folder / LOCK).open("w")
    with lock:
        if not _try_lock(lock.fileno(), folder):
            raise CorpusError(f"Another process is {action} {folder} right now. Wait for it, or stop it.")
        try:
            yield
        finally:
            (folder / LOCK).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                folder.rmdir()  # succeeds only when the folder is empty


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:  # no parent folder can be created, as under /proc
        raise InputError(f"There can be no folder {folder}. Choose another one for --out.") from error


def wait_until_free(folder: Path, seconds: float = 0.2) -> None:
    """Wait until no process holds a folder: workers of a killed process may still be running."""
    while (folder / LOCK).exists():
        with contextlib.suppress(FileNotFoundError), (folder / LOCK).open("r") as lock:
            if _try_lock(lock.fileno(), folder):
                return
        time.sleep(seconds)


def check_usable(folder: Path, what: str, allowed: Container[str] = ()) -> None:
    """Refuse a file, and a folder with other content than a lock, temporary files and `besides`.

    `what` the folder is for: "run".
    """
    with disk_errors(folder):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file, and a {what} needs a folder. Choose a new folder for --out.")
        there = list(folder.iterdir()) if folder.exists() else []
    for path in there:
        if path.name != LOCK and path.name not in allowed and not is_temp_path(path):
            raise InputError(
                f"{folder} is not empty and holds no {what} of unmask (it holds {path.name}). Choose a new folder for "
                "--out."
            )


def _try_lock(lock: int, folder: Path) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The previous holder may have removed the file in the meantime; a lock on it is void.
        return os.fstat(lock).st_ino == (folder / LOCK).stat().st_ino
    except OSError:
        return False
