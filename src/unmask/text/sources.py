"""Which files a user meant: paths, folders and patterns become a list of sources.

What arrives: what the user wrote: files, folders, patterns such as `data/*.jsonl.gz`, or `-` for standard input.
What leaves: sources in a fixed order, each with a short unique name, its kind and its packing.
What never happens here: reading text. A name that matches nothing is refused at once, before hours of work.
"""

from __future__ import annotations

import glob
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from unmask.errors import InputError

STANDARD_INPUT = "-"


class Format(StrEnum):
    """How a file holds its documents."""

    TEXT = "txt"
    JSON_LINES = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"
    """What Hugging Face's `save_to_disk` writes."""
    SNIFF = "sniff"
    """Standard input has no name to tell by, so its first bytes decide."""


class Packing(StrEnum):
    """How a file is compressed."""

    PLAIN = ""
    GZIP = ".gz"
    ZSTANDARD = ".zst"


_KINDS = {
    ".txt": Format.TEXT,
    ".jsonl": Format.JSON_LINES,
    ".ndjson": Format.JSON_LINES,
    ".parquet": Format.PARQUET,
    ".arrow": Format.ARROW,
}
_BESIDE = ("state.json", "dataset_info.json", "dataset_dict.json")
"""What `save_to_disk` writes beside the data."""
_KNOWN = f"{', '.join(_KINDS)}, each also with .gz or .zst"


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read. `name` is what ids and messages call it."""

    path: Path
    name: str
    format: Format
    packing: Packing

    @property
    def is_standard_input(self) -> bool:
        """Whether this is no file at all."""
        return self.format is Format.SNIFF

    @property
    def size(self) -> int:
        """Bytes on disk; 0 for standard input and for a file that has vanished."""
        try:
            return 0 if self.is_standard_input else self.path.stat().st_size
        except OSError:
            return 0


def find_sources(given: Sequence[str]) -> tuple[Source, ...]:
    """Every file behind what the user wrote, each once, folders and patterns in sorted order."""
    found: dict[Path, Source] = {}
    for written in given:
        for source in _expand(written):
            found.setdefault(source.path.resolve(), source)
    if not found:
        raise InputError("No input was given. Name a file, a folder, a pattern, or - for standard input.")
    return _named_apart(tuple(found.values()))


def unknown_kinds(given: Sequence[str]) -> Iterator[tuple[str, Counter[str]]]:
    """Each folder that holds files which are not read: how many of each ending. Hidden files do not count."""
    for written in dict.fromkeys(given):
        folder = Path(written)
        paths = folder.rglob("*") if folder.is_dir() else ()
        kinds = Counter(
            path.suffix.lower() or "no ending"
            for path in paths
            if not (path.is_dir() or _kind(path) or path.name in _BESIDE or _is_hidden(path.relative_to(folder)))
        )
        if kinds:
            yield written, kinds


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def total_bytes(given: Sequence[str]) -> int:
    """The size on disk of everything that `read` would open: what a progress bar counts up to."""
    return sum(source.size for source in find_sources(given))


def _expand(written: str) -> list[Source]:
    if written == STANDARD_INPUT:
        return [Source(Path(STANDARD_INPUT), "stdin", Format.SNIFF, Packing.PLAIN)]
    path = Path(written)
    if path.is_dir():
        return _inside(path)
    if path.exists():
        return [_file(path, path.name)]
    matches = sorted(glob.glob(written, recursive=True))  # noqa: PTH207 (Path.glob refuses absolute patterns)
    if not matches:
        raise InputError(f"{written}: there is no such file or folder, and no file matches it as a pattern.")
    sources = [source for match in matches for source in _from_match(Path(match))]
    if not sources:
        raise InputError(f"{written}: matches no file of a known kind. Known are {_KNOWN}.")
    return sources


def _from_match(path: Path) -> list[Source]:
    if path.is_dir():
        return _known_files(path)
    return [_file(path, path.name)] if _kind(path) else []


def _inside(folder: Path) -> list[Source]:
    sources = _known_files(folder)
    if not sources:
        raise InputError(f"{folder}: holds no file of a known kind. Known are {_KNOWN}.")
    return sources


def _known_files(folder: Path) -> list[Source]:
    paths = sorted(
        path for path in folder.rglob("*") if not path.is_dir() and _kind(path) and not _hidden(path, folder)
    )
    saved = {parent: _saved_dataset(parent) for parent in {path.parent for path in paths}}
    return [
        _file(path, path.relative_to(folder).as_posix())
        for path in paths
        if not path.name.endswith(".arrow") or path.name in saved[path.parent]
    ]


def _hidden(path: Path, folder: Path) -> bool:
    """Whether a file below a folder is no user's text: a version store, a notebook's copies, a lock."""
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _saved_dataset(folder: Path) -> frozenset[str]:
    """The arrow files that `save_to_disk` lists in a folder. Other arrow files there are caches, not the data."""
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        return frozenset(entry["filename"] for entry in state["_data_files"])
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()


def _file(path: Path, name: str) -> Source:
    kind = _kind(path)
    if not kind:
        raise InputError(f"{path}: is not of a known kind. Known are {_KNOWN}; rename the file to say what it holds.")
    return Source(path, name, *kind)


def unpacked_name(name: str) -> tuple[str, Packing]:
    """What a file would be called without its packing, in small letters, and that packing."""
    lower = name.lower()
    packing = next((p for p in (Packing.GZIP, Packing.ZSTANDARD) if lower.endswith(p)), Packing.PLAIN)
    return lower.removesuffix(packing), packing


def _kind(path: Path) -> tuple[Format, Packing] | tuple[()]:
    name, packing = unpacked_name(path.name)
    suffix = Path(name).suffix
    return (_KINDS[suffix], packing) if suffix in _KINDS else ()


def _named_apart(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Short names where they are unique; the path as found where two files share one."""
    sources = tuple(sources)
    uses = Counter(source.name for source in sources)
    return tuple(s if uses[s.name] == 1 else replace(s, name=s.path.as_posix()) for s in sources)
