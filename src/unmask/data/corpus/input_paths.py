"""The input paths of `prepare`, expanded once, with standard input stored in the output folder.

Text is read twice, first for the vocabulary, so that input inside the output folder is refused.
"""

from __future__ import annotations

import filecmp
import sys
from collections.abc import Sequence
from pathlib import Path

from unmask.core.errors import CorpusError, InputError
from unmask.core.io.atomic import atomic_file, temp_path
from unmask.core.reporter import SILENT, Reporter
from unmask.data.corpus.corpus_folder import STDIN_FILES, is_started
from unmask.data.text.drop_reasons import UnreadableFile
from unmask.data.text.files.decompress import read_blocks
from unmask.data.text.files.paths import STANDARD_INPUT, FileFormat, expand_paths

_UTF8_MARK = b"\xef\xbb\xbf"


def expand_inputs(corpus: Sequence[str], out: Path) -> list[str]:
    """The files of paths and patterns; input inside the output folder, or around it, is refused."""
    paths: list[str] = []
    for written in corpus:
        is_pattern = written != STANDARD_INPUT and not Path(written).exists()
        paths += [str(source.path) for source in expand_paths([written])] if is_pattern else [written]
    for folder in filter(Path.is_dir, map(Path, paths)):
        if out.resolve().is_relative_to(folder.resolve()):
            raise InputError(
                f"--out {out} is inside the input folder {folder}, so what is written there would be read as text. "
                "Choose a folder outside."
            )
    for source in expand_paths(paths):
        if source.is_standard_input:
            continue
        if source.path.resolve().is_relative_to(out.resolve()):
            raise InputError(f"{source.path} is inside the output folder {out}. Choose another folder for --out.")
        if source.path.exists() and not source.path.is_file():
            raise InputError(
                f"{source.path} is no regular file (a pipe or a device?), and input is read twice. "
                f"Send it to standard input instead: unmask prepare - --out {out} < {source.path}"
            )
    return paths


def dialogue_files(given: Sequence[str]) -> list[Path]:
    """The files of dialogues: JSON lines or plain text, which must exist."""
    if STANDARD_INPUT in given:
        raise InputError("--dialogues takes files, folders or patterns, not standard input. Store it in a file first.")
    sources = expand_paths(given) if given else ()
    for source in sources:
        if source.format not in (FileFormat.TEXT, FileFormat.JSON_LINES):
            raise InputError(
                f"--dialogues {source.path}: conversations are read from .jsonl and .txt files, also packed, not from "
                f'.{source.format} files. Write one conversation a line: {{"turns": ["…", "…"]}}'
            )
    return [source.path for source in sources]


def store_stdin(paths: Sequence[str], out: Path, reporter: Reporter = SILENT) -> list[str]:
    """The same paths with standard input stored in the output folder, which must be locked."""
    if STANDARD_INPUT not in paths:
        return list(paths)
    known = [out / name for name in STDIN_FILES if (out / name).exists()]
    if not is_started(out):
        kept = _store(out, reporter)
    elif known:
        kept = known[0]
        _check_same(kept, reporter)
    else:
        raise CorpusError(f"{out} was begun with files, not with standard input. Choose a new folder for --out.")
    return [str(kept) if path == STANDARD_INPUT else path for path in paths]


def _store(out: Path, reporter: Reporter) -> Path:
    """Copy standard input to a file with the suffix of its format."""
    for name in STDIN_FILES:
        (out / name).unlink(missing_ok=True)  # from a run that was killed before it started
    part = temp_path(out / "stdin")
    with reporter.progress("reading standard input", 0):
        kind = _copy(part)
    return part.rename(out / f"stdin.{kind}")


def _check_same(kept: Path, reporter: Reporter) -> None:
    """On resuming, standard input must be unchanged, or empty: then the stored file is used."""
    if sys.stdin.isatty():
        return
    part = temp_path(kept)
    with reporter.progress("comparing standard input with what is stored", 0):
        _copy(part)
    same = part.stat().st_size == 0 or filecmp.cmp(part, kept, shallow=False)
    part.unlink()
    if not same:
        raise CorpusError(
            f"{kept.parent} already holds another corpus: standard input is not what it was when preparing began. "
            "Choose a new folder for --out, or remove this one."
        )


def _copy(path: Path) -> str:
    """Copy standard input, decompressed; returns its format, by its first visible character."""
    first = b""
    (source,) = expand_paths([STANDARD_INPUT])
    try:
        with atomic_file(path) as file:
            for block in read_blocks(source, lambda _: None):
                first = first or block.removeprefix(_UTF8_MARK).lstrip()[:1]
                file.write(block)
    except UnreadableFile as trouble:
        raise InputError(f"Standard input cannot be used: {trouble.detail}.") from trouble
    return "jsonl" if first == b"{" else "txt"
