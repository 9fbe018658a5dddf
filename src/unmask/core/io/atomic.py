"""Safe files: what is on disk is whole, or it is not there.

What arrives: bytes, JSON values or arrays. What leaves: files that were flushed and then renamed into place.
What never happens here: a half-written file under its final name, and any format that can run code.
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
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from unmask.core.errors import CorpusError, UserError


class DiskFullAdvice(StrEnum):
    """What is still there when a disk is full, and what to do then."""

    FINISHED = (
        "What was finished is kept: free some space, or use another disk, and start the same command again to go on."
    )
    NOTHING = "Nothing was written: free some space, or use another disk, and start the same command again."


FORMAT = 1
"""The format of the JSON files of runs, fine-tuned models, checkpoints and corpora."""
_TEMP_NAME = re.compile(r"\..+\.\d+")
_PREPARE_ADVICE = "Prepare the corpus again into an empty folder."


def write_text(path: Path, text: str) -> None:
    """Write a text file, flush it, then give it its name."""
    with atomic_file(path) as file:
        # A file name may hold bytes that are no text. Escaped like this, it is still the same name in JSON.
        file.write(text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def atomic_file(final: Path) -> Iterator[BinaryIO]:
    """A file to fill; it gets its final name when the block ends well, and vanishes when it does not."""
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
    """Write JSON that reads well and is the same for the same value."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n")


def read_json(path: Path, advice: str = _PREPARE_ADVICE, refusal: type[UserError] = CorpusError) -> dict[str, Any]:
    """Read a JSON object. What is none is refused with advice, which depends on who wrote the file."""
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
    """Write a `.npy` file into a folder that is not yet in place, and return the digest of its bytes."""
    with path.open("wb") as file:
        writing = _HashingWriter(file)
        np.save(writing, array, allow_pickle=False)  # numpy needs no more than `write`
        _flush(file)
    return writing.state.hexdigest()


def write_blocks(path: Path, blocks: Iterable[bytes | memoryview]) -> str:
    """Write a file into a folder that is not yet in place, block by block, and return the digest of its bytes."""
    with path.open("wb") as file:
        writing = _HashingWriter(file)
        for block in blocks:
            writing.write(block)
        _flush(file)
    return writing.state.hexdigest()


class _HashingWriter:
    """Passes bytes on and keeps their digest.

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
    """A folder to fill; it gets its final name when the block ends well, and vanishes when it does not.

    `kept` is FINISHED for a part of something larger that can go on, and NOTHING for what is made as a whole.
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
        # A worker that outlived a killed run was faster. It made the same, so either will do.
        shutil.rmtree(part, ignore_errors=True)
    _flush_folder(final.parent)


def temp_path(final: Path) -> Path:
    """What a file or folder is called while this process is still filling it."""
    return final.with_name(f".{final.name}.{os.getpid()}")


def is_temp_path(path: Path) -> bool:
    """Whether this is something unfinished, by its name."""
    return _TEMP_NAME.fullmatch(path.name) is not None


def _is_inside_temp(place: Path) -> bool:
    """Whether a place lies in a folder that this process is still filling."""
    return any(is_temp_path(path) and path.suffix == f".{os.getpid()}" for path in (place, *place.parents))


def remove_temp(folder: Path) -> None:
    """Remove what a killed run left unfinished. Nobody else may be writing to the folder."""
    for path in folder.glob(".*"):
        if is_temp_path(path) and path.is_file():  # unfinished folders beside the shards belong to other commands
            path.unlink(missing_ok=True)
    for path in folder.glob("shards/.*"):
        if is_temp_path(path):
            shutil.rmtree(path, ignore_errors=True)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the names in a folder as safe as the bytes of its files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def disk_errors(where: Path, advice: DiskFullAdvice = DiskFullAdvice.FINISHED) -> Iterator[None]:
    """Turn the system's disk errors into a sentence. In an unfinished folder it is left to whoever makes that."""
    try:
        yield
    except OSError as error:
        if _is_inside_temp(where):
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"The disk under {where} is full. {advice}") from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise UserError(f"Nothing can be written to {where} ({error.strerror}). Choose another folder.") from error
        raise
