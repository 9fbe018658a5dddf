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
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.errors import CorpusError, UserError


def write_text(path: Path, text: str) -> None:
    """Write a text file, flush it, then give it its name."""
    with disk_space(path.parent):
        part = path.with_name(f".{path.name}.{os.getpid()}")
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)


def write_json(path: Path, value: object) -> None:
    """Write JSON that reads well and is the same for the same value."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object that this package wrote."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path} cannot be read ({error}). Prepare the corpus again into an empty folder.") from error
    if not isinstance(value, dict):
        raise CorpusError(f"{path} should hold a JSON object. Prepare the corpus again into an empty folder.")
    return value


def write_array(path: Path, array: npt.NDArray[Any]) -> str:
    """Write a `.npy` file into a folder that is not yet in place, and return the digest of its bytes."""
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return digest_of(path)


def digest_of(path: Path) -> str:
    """The BLAKE2 digest of a file, read in pieces."""
    state = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


@contextlib.contextmanager
def new_folder(final: Path) -> Iterator[Path]:
    """A folder to fill; it gets its final name when the block ends well, and vanishes when it does not."""
    part = final.with_name(f".{final.name}.{os.getpid()}")
    shutil.rmtree(part, ignore_errors=True)
    with disk_space(final.parent):
        part.mkdir(parents=True)
        try:
            yield part
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        part.rename(final)


@contextlib.contextmanager
def disk_space(where: Path) -> Iterator[None]:
    """Turn the system's disk errors into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"The disk under {where} is full. What was finished is kept: free some space, or use another disk, and "
                "start the same command again to go on."
            ) from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise UserError(f"Nothing can be written to {where} ({error.strerror}). Choose another folder.") from error
        raise
