"""The output folder of `prepare`: locked, started once, resumed with the same settings.

`work.json` holds the settings, and the names and sizes of the input files, without times and absolute paths: a corpus
may be moved before it is resumed. A folder with other content is refused.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from unmask.core.errors import CorpusError
from unmask.core.io.atomic import disk_errors, read_versioned_json, remove_temp, write_versioned_json
from unmask.core.io.folder_lock import check_usable, folder_lock
from unmask.data.text.files.paths import expand_paths

STDIN_FILES = ("stdin.txt", "stdin.jsonl")
"""The names of stored standard input: the only files that exist before `work.json`."""


@contextlib.contextmanager
def lock_corpus(folder: Path) -> Iterator[None]:
    """Lock a folder, which is created if missing, and removed again if nothing is started."""
    if not is_started(folder):
        check_usable(folder, "corpus", allowed=STDIN_FILES)
    with folder_lock(folder, "preparing"):
        try:
            yield
        finally:
            if not is_started(folder):
                for name in STDIN_FILES:
                    (folder / name).unlink(missing_ok=True)


def is_started(folder: Path) -> bool:
    """Whether a corpus was started in this folder."""
    with disk_errors(folder):
        return (folder / "work.json").exists()


def start_or_resume(folder: Path, sources: Sequence[str], settings: dict[str, Any]) -> bool:
    """Start or resume a corpus in a locked folder; true if it is finished already.

    A folder that was started with other settings or other input is refused.
    """
    mine = {
        "sources": [[source.name, source.size] for source in expand_paths(sources)],
        "settings": json.loads(json.dumps(settings)),
    }
    if is_started(folder):
        _check_same(folder, read_versioned_json(folder / "work.json"), mine)
    else:
        write_versioned_json(folder / "work.json", mine)
    with disk_errors(folder):
        (folder / "shards").mkdir(exist_ok=True)
    if (folder / "manifest.json").exists():
        return True
    remove_temp(folder)
    return False


def _check_same(folder: Path, theirs: dict[str, Any], mine: dict[str, Any]) -> None:
    if theirs == mine:
        return
    if theirs.get("sources") != mine["sources"]:
        detail = _other_sources(theirs.get("sources", []), mine["sources"])
    else:
        was, now = theirs.get("settings", {}), mine["settings"]
        name = next(key for key in {**was, **now} if was.get(key) != now.get(key))
        detail = f"'{name}' was {was.get(name)!r} and is now {now.get(name)!r}"
    raise CorpusError(
        f"{folder} already holds another corpus, or one prepared in another way: {detail}. "
        "Choose a new folder for --out, or remove this one."
    )


def _other_sources(was: list[list[Any]], now: list[list[Any]]) -> str:
    """The first difference between two lists of files."""
    for (old, size), (new, found) in zip(was, now, strict=False):
        if old != new:
            return f"it was begun with the file {old}, and now there is {new} in its place"
        if size != found:
            return f"the file {old} had {size:,} bytes and now has {found:,}"
    return f"it was begun with {len(was)} input files, and now there are {len(now)}"
