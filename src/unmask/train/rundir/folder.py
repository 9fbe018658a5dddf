"""The folder of one run: its lock, its description, and the refusal of another run's folder."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from unmask.core.codec import fill_defaults
from unmask.core.errors import InputError
from unmask.core.io.atomic import disk_errors, read_versioned_json, remove_temp, write_versioned_json
from unmask.core.io.folder_lock import check_usable, folder_lock

RUN, FINISHED = "run.json", "finished.json"
NEW_FOLDER_ADVICE = "choose a new folder for --out"
"""What to do for something new."""
_LABELS = frozenset({"unmask", "folder", "parameters", "fingerprint", "year", "paper", "title", "changed", "parent"})
"""What may differ between two starts of the same run: it follows from the rest, or changes nothing."""


@contextlib.contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Keep every other process out of the folder of a run, for the time of a block."""
    if not is_run_folder(folder):
        check_usable(folder, "run")
    with folder_lock(folder, "training in"):
        remove_temp(folder)
        yield


def is_run_folder(folder: Path) -> bool:
    """Whether a run was begun in this folder."""
    with disk_errors(folder):
        return (folder / RUN).is_file()


def is_finished(folder: Path) -> bool:
    """Whether the run in this folder came to its end."""
    return (folder / FINISHED).is_file()


def check_same_run(folder: Path, description: Mapping[str, Any], advice: str = NEW_FOLDER_ADVICE) -> None:
    """Refuse a file, a folder that holds something else, and a folder of another run. Nothing is written.

    `advice`: how to start a new run instead.
    """
    if is_run_folder(folder):
        _check_same(folder, description, advice)
    else:
        check_usable(folder, "run")


def start_or_resume(folder: Path, description: Mapping[str, Any], advice: str = NEW_FOLDER_ADVICE) -> None:
    """Start a run in a locked folder, or resume the same one; a folder of another run is refused."""
    if is_run_folder(folder):
        _check_same(folder, description, advice)
    else:
        write_versioned_json(folder / RUN, dict(description))


def _check_same(folder: Path, description: Mapping[str, Any], instead: str) -> None:
    mine = json.loads(json.dumps(description))
    for path, was, now in _differences(fill_defaults(read_run(folder)), mine, ""):
        change = "has changed since" if _is_digest(was) and _is_digest(now) else f"was {was} and is now {now}"
        raise InputError(
            f"{folder} holds another run: {path} {change}. To go on with it, start it as it was begun; for something "
            f"new, {instead}."
        )


def mark_finished(folder: Path, summary: Mapping[str, Any]) -> None:
    """Mark a run as finished, with its summary."""
    write_versioned_json(folder / FINISHED, dict(summary))


def read_finished(folder: Path) -> dict[str, Any]:
    """The summary of a finished run."""
    return read_versioned_json(folder / FINISHED, "Remove that file and start the same command again.", InputError)


def read_run(folder: Path) -> dict[str, Any]:
    """The description of the run in a folder."""
    if not is_run_folder(folder):
        raise InputError(f"{folder} holds no run: it has no {RUN}. Give the folder that was --out of a training.")
    advice = "Put back the file that was written there, or choose a new folder for --out."
    return read_versioned_json(folder / RUN, advice, InputError)


def _differences(was: object, now: object, path: str) -> Iterator[tuple[str, str, str]]:
    """Where two descriptions differ, in words. A missing value is `nothing`."""
    if isinstance(was, dict) and isinstance(now, dict):
        for name in [name for name in {**now, **was} if name not in _LABELS]:
            yield from _differences(was.get(name), now.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(was, list) and isinstance(now, list):
        for number, (old, new) in enumerate(zip_longest(was, now)):
            yield from _differences(old, new, f"{path}.{number}")
    elif was != now:
        yield path, _shorten(was), _shorten(now)


def _is_digest(value: str) -> bool:
    return re.fullmatch(r'"[0-9a-f]{32}"', value) is not None


def _shorten(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return "nothing" if value is None else text if len(text) <= 60 else f"{text[:57]}..."
