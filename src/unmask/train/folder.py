"""The folder of one run: what was begun there, and who may write to it.

What arrives: a folder that a user named, and a description of what is to be learned.
What leaves: the right to write there, for a new run or to go on with the same one.
What never happens here: touching what is not ours, or going on with another run.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unmask.errors import InputError
from unmask.shards.files import is_part, read_json, sweep, write_json
from unmask.shards.lock import LOCK, locked

RUN, FINISHED = "run.json", "finished.json"
_LABELS = frozenset({"unmask", "folder", "parameters", "fingerprint"})
"""What may differ between two starts of the same run: it follows from the rest, or changes nothing."""


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Keep every other process out of the folder of a run, for the time of a block."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and a run needs a folder. Choose a new folder for --out.")
    if folder.is_dir() and not begun(folder):
        for path in folder.iterdir():
            if path.name != LOCK and not is_part(path):
                raise InputError(
                    f"{folder} is not empty and holds no run of unmask (it holds {path.name}). Choose a new folder "
                    "for --out."
                )
    with locked(folder, "training in"):
        sweep(folder)
        yield


def begun(folder: Path) -> bool:
    """Whether a run was begun in this folder."""
    return (folder / RUN).is_file()


def finished(folder: Path) -> bool:
    """Whether the run in this folder came to its end."""
    return (folder / FINISHED).is_file()


def begin(folder: Path, description: Mapping[str, Any]) -> None:
    """Begin a run in a held folder, or go on with the same one; a folder of another run is refused."""
    mine = json.loads(json.dumps(description))
    if not begun(folder):
        write_json(folder / RUN, mine)
        return
    found = read_run(folder)
    for path, was, now in _differences(found, mine, ""):
        raise InputError(
            f"{folder} holds another run: {path} was {was} and is now {now}. To go on with it, start it as it was "
            "begun; for something new, choose a new folder for --out (and --from to begin with its weights)."
        )


def finish(folder: Path, summary: Mapping[str, Any]) -> None:
    """Say that a run came to its end, and with what."""
    write_json(folder / FINISHED, dict(summary))


def read_run(folder: Path) -> dict[str, Any]:
    """What was begun in a folder."""
    if not begun(folder):
        raise InputError(f"{folder} holds no run: it has no {RUN}. Give the folder that was --out of a training.")
    return read_json(folder / RUN)


def _differences(was: object, now: object, path: str) -> Iterator[tuple[str, str, str]]:
    """Where two descriptions differ, in words."""
    if isinstance(was, dict) and isinstance(now, dict):
        for name in [name for name in {**was, **now} if name not in _LABELS]:
            yield from _differences(was.get(name), now.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for number, (old, new) in enumerate(zip(was, now, strict=True)):
            yield from _differences(old, new, f"{path}.{number}")
    elif was != now:
        yield path, _brief(was), _brief(now)


def _brief(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return "nothing" if value is None else text if len(text) <= 60 else f"{text[:57]}..."
