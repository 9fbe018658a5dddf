"""The folder `vectors` of a prepared corpus: word vectors and the table of similar words.

It has the arrays of the table, `vectors.npy` with `words.txt` (a line for each row), and `table.json` with the
settings. `Corpus.open` loads it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unmask.core.errors import CorpusError
from unmask.core.io.atomic import DiskFullAdvice, atomic_folder, write_array, write_text, write_versioned_json
from unmask.data.similar_words.train_vectors import WordVectors
from unmask.data.tokenize.similar_word_table import SimilarWords

FOLDER_NAME = "vectors"


@contextlib.contextmanager
def vectors_lock(folder: Path) -> Iterator[None]:
    """Lock the vectors of a corpus, and remove what a killed process left."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CorpusError(f"Another process is making the vectors of {folder} right now. Wait for it.") from error
        _restore_old(folder)
        for left in folder.glob(f".{FOLDER_NAME}.*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(handle)


def save_table(
    folder: Path, table: SimilarWords, vectors: WordVectors, tokenizer: str, settings: dict[str, Any]
) -> Path:
    """Write the table atomically, in place of an old one. Call it inside `vectors_lock`."""
    final = folder / FOLDER_NAME
    try:
        with atomic_folder(final, DiskFullAdvice.NOTHING) as part:
            for name, array in table.arrays().items():
                write_array(part / f"{name}.npy", array)
            if vectors.spellings:
                write_array(part / "vectors.npy", vectors.matrix)
                write_text(part / "words.txt", "".join(f"{spelling}\n" for spelling in vectors.spellings))
            write_versioned_json(part / "table.json", {"tokenizer": tokenizer, "settings": settings})
            if final.exists():
                final.rename(_old_path(folder))
    finally:
        _restore_old(folder)
    shutil.rmtree(_old_path(folder), ignore_errors=True)
    return final


def _restore_old(folder: Path) -> None:
    """Restore the old table if the new one is not in place."""
    if _old_path(folder).exists() and not (folder / FOLDER_NAME).exists():
        _old_path(folder).rename(folder / FOLDER_NAME)


def _old_path(folder: Path) -> Path:
    """The path of the old table while it is replaced."""
    return folder / f".{FOLDER_NAME}.old"
