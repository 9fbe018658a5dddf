"""Paths, folders, patterns and standard input as a sorted list of input files.

Each file has a short unique name, a format and a compression. A path that matches nothing is refused at once.
"""

from __future__ import annotations

import glob
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from unmask.core.errors import InputError

STANDARD_INPUT = "-"


class FileFormat(StrEnum):
    """The format of a file."""

    TEXT = "txt"
    JSON_LINES = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"
    """The files of Hugging Face's `save_to_disk`."""
    SNIFF = "sniff"
    """Standard input has no name, so its first bytes decide."""


class Compression(StrEnum):
    """The compression of a file."""

    PLAIN = ""
    GZIP = ".gz"
    ZSTANDARD = ".zst"


_FORMAT_OF_SUFFIX = {
    ".txt": FileFormat.TEXT,
    ".jsonl": FileFormat.JSON_LINES,
    ".ndjson": FileFormat.JSON_LINES,
    ".parquet": FileFormat.PARQUET,
    ".arrow": FileFormat.ARROW,
}
_METADATA_FILES = ("state.json", "dataset_info.json", "dataset_dict.json")
"""Other files of `save_to_disk`."""
_KNOWN = f"{', '.join(_FORMAT_OF_SUFFIX)}, each also with .gz or .zst"


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to read. `name` is its name in ids and messages."""

    path: Path
    name: str
    format: FileFormat
    compression: Compression

    @property
    def is_standard_input(self) -> bool:
        """Whether this is standard input."""
        return self.format is FileFormat.SNIFF

    @property
    def size(self) -> int:
        """Bytes on disk; 0 for standard input and for a file that was removed."""
        try:
            return 0 if self.is_standard_input else self.path.stat().st_size
        except OSError:
            return 0


def expand_paths(paths: Sequence[str]) -> tuple[InputFile, ...]:
    """All files of the given paths, each once; folders and patterns in sorted order."""
    found: dict[Path, InputFile] = {}
    for written in paths:
        for source in _expand(written):
            found.setdefault(source.path.resolve(), source)
    if not found:
        raise InputError("No input was given. Name a file, a folder, a pattern, or - for standard input.")
    return _make_names_unique(tuple(found.values()))


def skipped_types(inputs: Sequence[str]) -> Iterator[tuple[str, Counter[str]]]:
    """Each folder with files that are not read, with their number by ending. Hidden files do not count."""
    for written in dict.fromkeys(inputs):
        folder = Path(written)
        paths = folder.rglob("*") if folder.is_dir() else ()
        kinds = Counter(
            path.suffix.lower() or "no ending"
            for path in paths
            if not (
                path.is_dir()
                or _format_and_compression(path)
                or path.name in _METADATA_FILES
                or _is_hidden(path.relative_to(folder))
            )
        )
        if kinds:
            yield written, kinds


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def total_bytes(paths: Sequence[str]) -> int:
    """The size on disk of all files: the total of a progress bar."""
    return sum(source.size for source in expand_paths(paths))


def _expand(written: str) -> list[InputFile]:
    if written == STANDARD_INPUT:
        return [InputFile(Path(STANDARD_INPUT), "stdin", FileFormat.SNIFF, Compression.PLAIN)]
    path = Path(written)
    if path.is_dir():
        return _files_in_folder(path)
    if path.exists():
        return [_file(path, path.name)]
    matches = sorted(glob.glob(written, recursive=True))  # noqa: PTH207 (Path.glob refuses absolute patterns)
    if not matches:
        raise InputError(f"{written}: there is no such file or folder, and no file matches it as a pattern.")
    sources = [source for match in matches for source in _from_match(Path(match))]
    if not sources:
        raise InputError(f"{written}: matches no file of a known kind. Known are {_KNOWN}.")
    return sources


def _from_match(path: Path) -> list[InputFile]:
    if path.is_dir():
        return _known_files(path)
    return [_file(path, path.name)] if _format_and_compression(path) else []


def _files_in_folder(folder: Path) -> list[InputFile]:
    sources = _known_files(folder)
    if not sources:
        raise InputError(f"{folder}: holds no file of a known kind. Known are {_KNOWN}.")
    return sources


def _known_files(folder: Path) -> list[InputFile]:
    paths = sorted(
        path
        for path in folder.rglob("*")
        if not path.is_dir() and _format_and_compression(path) and not _hidden(path, folder)
    )
    saved = {parent: _saved_dataset(parent) for parent in {path.parent for path in paths}}
    return [
        _file(path, path.relative_to(folder).as_posix())
        for path in paths
        if not path.name.endswith(".arrow") or path.name in saved[path.parent]
    ]


def _hidden(path: Path, folder: Path) -> bool:
    """Whether a file in a folder is hidden, such as a version store or a lock."""
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _saved_dataset(folder: Path) -> frozenset[str]:
    """The arrow files that `save_to_disk` lists in a folder. Other arrow files there are caches."""
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        return frozenset(entry["filename"] for entry in state["_data_files"])
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()


def _file(path: Path, name: str) -> InputFile:
    kind = _format_and_compression(path)
    if not kind:
        raise InputError(f"{path}: is not of a known kind. Known are {_KNOWN}; rename the file to say what it holds.")
    return InputFile(path, name, *kind)


def strip_compression_suffix(name: str) -> tuple[str, Compression]:
    """The lower-case name of a file without its compression suffix, and that compression."""
    lower = name.lower()
    compression = next((p for p in (Compression.GZIP, Compression.ZSTANDARD) if lower.endswith(p)), Compression.PLAIN)
    return lower.removesuffix(compression), compression


def _format_and_compression(path: Path) -> tuple[FileFormat, Compression] | tuple[()]:
    name, compression = strip_compression_suffix(path.name)
    suffix = Path(name).suffix
    return (_FORMAT_OF_SUFFIX[suffix], compression) if suffix in _FORMAT_OF_SUFFIX else ()


def _make_names_unique(sources: Iterable[InputFile]) -> tuple[InputFile, ...]:
    """Short names where they are unique, else full paths."""
    sources = tuple(sources)
    uses = Counter(source.name for source in sources)
    return tuple(s if uses[s.name] == 1 else replace(s, name=s.path.as_posix()) for s in sources)
