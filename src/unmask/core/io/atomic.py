"""Atomic files and folders: a file is complete under its final name, or absent.

Files are written under a temporary name, flushed and renamed. No format here can run code.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from unmask.core.errors import CorpusError, UserError


class DiskFullAdvice(StrEnum):
    """What remains after a full disk, and the advice that follows from it."""

    FINISHED = (
        "What was finished is kept: free some space, or use another disk, and start the same command again to go on."
    )
    NOTHING = "Nothing was written: free some space, or use another disk, and start the same command again."


FORMAT = 1
"""The format of the JSON files of runs, fine-tuned models, checkpoints and corpora."""
_TEMP_NAME = re.compile(r"\..+\.\d+")
_PREPARE_ADVICE = "Prepare the corpus again into an empty folder."


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_file(path) as file:
        # File names may hold bytes that are not UTF-8; escaped, they survive JSON.
        file.write(text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def atomic_file(final: Path) -> Iterator[BinaryIO]:
    """A file to write; it is renamed to `final` at the end of the block and removed after an error."""
    part = temp_path(final)
    with disk_errors(final.parent):
        try:
            with part.open("wb") as file:
                yield file
                _flush(file)
            part.replace(final)
            _flush_folder(final.parent)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


def write_json(path: Path, value: object) -> None:
    """Write indented JSON with sorted keys: equal values give equal files."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n")


def read_json(path: Path, advice: str = _PREPARE_ADVICE, refusal: type[UserError] = CorpusError) -> dict[str, Any]:
    """Read a JSON object. Anything else is refused with the given advice."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise refusal(f"{path} cannot be read ({error}). {advice}") from error
    if not isinstance(value, dict):
        raise refusal(f"{path} should hold a JSON object. {advice}")
    return value


def write_versioned_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON with the number of its format."""
    write_json(path, {"format": FORMAT, **value})


def read_versioned_json(
    path: Path, advice: str = _PREPARE_ADVICE, refusal: type[UserError] = CorpusError
) -> dict[str, Any]:
    """Read JSON that `write_versioned_json` wrote, without the number of its format. Another format is refused."""
    value = read_json(path, advice, refusal)
    found = value.pop("format", "no format")
    if found != FORMAT:
        raise refusal(f"{path} needs format {FORMAT}, which this version of unmask reads; found {found}. {advice}")
    return value


def write_array(path: Path, array: npt.NDArray[Any]) -> str:
    """Write a `.npy` file into a temporary folder and return the digest of its bytes."""
    with path.open("wb") as file:
        writing = _HashingWriter(file)
        np.save(writing, array, allow_pickle=False)  # numpy needs no more than `write`
        _flush(file)
    return writing.state.hexdigest()


def write_blocks(path: Path, blocks: Iterable[bytes | memoryview]) -> str:
    """Write blocks to a file in a temporary folder and return the digest of its bytes."""
    with path.open("wb") as file:
        writing = _HashingWriter(file)
        for block in blocks:
            writing.write(block)
        _flush(file)
    return writing.state.hexdigest()


class _HashingWriter:
    """A file object that forwards bytes and updates their digest.

    numpy would write to a real file past Python, and then report a full disk as an error without a reason.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.state = hashlib.blake2b(digest_size=16)

    def write(self, data: bytes | memoryview) -> int:
        self.state.update(data)
        return self.file.write(data)


def digest_bytes(data: bytes) -> str:
    """The BLAKE2 digest of some bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def digest_file(path: Path) -> str:
    """The BLAKE2 digest of a file, read in pieces."""
    state = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


@contextlib.contextmanager
def atomic_folder(final: Path, advice: DiskFullAdvice = DiskFullAdvice.FINISHED) -> Iterator[Path]:
    """A folder to write; it is renamed to `final` at the end of the block and removed after an error.

    `advice` is FINISHED for a part of something larger that can be resumed, and NOTHING for what is made as a whole.
    """
    part = temp_path(final)
    shutil.rmtree(part, ignore_errors=True)
    with disk_errors(final.parent if advice is DiskFullAdvice.FINISHED else final, advice):
        part.mkdir(parents=True)
        try:
            yield part
            _flush_folder(part)
            _rename_into_place(part, final)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def _rename_into_place(part: Path, final: Path) -> None:
    try:
        part.rename(final)
    except OSError:
        if not final.exists():
            raise
        # A worker of a killed run finished first. Both results are equal, so either is kept.
        shutil.rmtree(part, ignore_errors=True)
    _flush_folder(final.parent)


def temp_path(final: Path) -> Path:
    """The temporary name of a file or folder in this process."""
    return final.with_name(f".{final.name}.{os.getpid()}")


def is_temp_path(path: Path) -> bool:
    """Whether a path has a temporary name."""
    return _TEMP_NAME.fullmatch(path.name) is not None


def _is_inside_temp(place: Path) -> bool:
    """Whether a path is inside a temporary folder."""
    return any(is_temp_path(path) and path.suffix == f".{os.getpid()}" for path in (place, *place.parents))


def remove_temp(folder: Path) -> None:
    """Remove temporary files of a killed run. The caller holds the folder lock."""
    for path in folder.glob(".*"):
        if is_temp_path(path) and path.is_file():  # temporary folders next to the shards belong to other commands
            path.unlink(missing_ok=True)
    for path in folder.glob("shards/.*"):
        if is_temp_path(path):
            shutil.rmtree(path, ignore_errors=True)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Flush a folder, so that renames in it are durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def disk_errors(where: Path, advice: DiskFullAdvice = DiskFullAdvice.FINISHED) -> Iterator[None]:
    """Raise disk errors as a `UserError`; inside a temporary folder, they pass through to `atomic_folder`."""
    try:
        yield
    except OSError as error:
        raise_disk_error(error, where, advice)


def raise_disk_error(error: OSError, where: Path, advice: DiskFullAdvice = DiskFullAdvice.FINISHED) -> NoReturn:
    """Raise a disk error as a `UserError` where the user can do something about it."""
    if _is_inside_temp(where):
        raise error
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise UserError(f"The disk under {where} is full. {advice}") from error
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.ENAMETOOLONG):
        raise UserError(f"Nothing can be written to {where} ({error.strerror}). Choose another folder.") from error
    raise error
