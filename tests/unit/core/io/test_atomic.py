"""What is on disk is whole, or it is not there."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from pathlib import Path

import numpy as np
import pytest

from unmask.core.errors import CorpusError, UserError
from unmask.core.io.atomic import (
    DiskFullAdvice,
    atomic_file,
    atomic_folder,
    digest_file,
    disk_errors,
    read_json,
    remove_temp,
    temp_path,
    write_array,
    write_json,
    write_text,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "shard") as part:
        (part / "ids").write_text("1 2 3")
        assert not (tmp_path / "shard").exists()
    assert names(tmp_path) == ["shard"]
    assert (tmp_path / "shard" / "ids").read_text() == "1 2 3"


@pytest.mark.parametrize("trouble", [ValueError, KeyboardInterrupt])
def test_a_folder_vanishes_on_error(tmp_path: Path, trouble: type[BaseException]) -> None:
    def fill() -> None:
        with atomic_folder(tmp_path / "shard") as part:
            (part / "ids").write_text("1 2")
            raise trouble

    with pytest.raises(trouble):
        fill()
    assert names(tmp_path) == []


def test_a_folder_that_someone_else_made_meanwhile_stays(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "shard") as part:
        (part / "ids").write_text("mine")
        (tmp_path / "shard").mkdir()
        (tmp_path / "shard" / "ids").write_text("theirs")
    assert names(tmp_path) == ["shard"]
    assert (tmp_path / "shard" / "ids").read_text() == "theirs"


def test_a_file_keeps_its_old_content_on_error(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old")

    def fill() -> None:
        with atomic_file(tmp_path / "a.txt") as file:
            file.write(b"new, but")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 (it has no message)
        fill()
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_sweeping_leaves_what_is_not_ours(tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    for folder in (shards / "00001", shards / ".00002.4711", tmp_path / ".vectors.4711"):
        folder.mkdir(parents=True)
        (folder / "ids").touch()
    for name in (".hidden", ".work.json.99", "work.json", ".lock"):
        (tmp_path / name).touch()
    remove_temp(tmp_path)
    assert names(tmp_path) == [".hidden", ".lock", ".vectors.4711", "shards", "work.json"]
    assert names(shards) == ["00001"]
    assert temp_path(tmp_path / "x") == tmp_path / f".x.{os.getpid()}"


def test_json_is_the_same_for_the_same_value(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": "文", "a": [1, None]})
    write_json(tmp_path / "b.json", {"a": [1, None], "b": "文"})
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert read_json(tmp_path / "a.json") == {"a": [1, None], "b": "文"}


def test_json_holds_file_names_that_are_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    write_json(tmp_path / "a.json", {"name": name})
    assert read_json(tmp_path / "a.json") == {"name": name}


@pytest.mark.parametrize("content", ["", "{", "[1]", None])
def test_json_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "a.json").write_text(content)
    with pytest.raises(CorpusError, match=r"a\.json"):
        read_json(tmp_path / "a.json")


def test_the_digest_of_an_array_is_that_of_its_file(tmp_path: Path) -> None:
    array = np.arange(300_000, dtype=np.uint16)
    told = write_array(tmp_path / "a.npy", array)
    raw = (tmp_path / "a.npy").read_bytes()
    assert told == digest_file(tmp_path / "a.npy") == hashlib.blake2b(raw, digest_size=16).hexdigest()
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy", mmap_mode="r"), array)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_sentence() -> None:
    sentence = r"The disk under /data is full.*start the same command again"
    with pytest.raises(UserError, match=sentence), disk_errors(Path("/data")):
        write_array(Path("/dev/full"), np.zeros(100_000))


@pytest.mark.parametrize(
    ("kept", "named", "advice"),
    [
        (DiskFullAdvice.FINISHED, ".", "What was finished is kept: .* to go on."),
        (DiskFullAdvice.NOTHING, "made", "Nothing was written: .* start the same command again."),
    ],
)
def test_a_full_disk_under_an_unfinished_folder_is_told_under_its_own_name(
    tmp_path: Path, kept: DiskFullAdvice, named: str, advice: str
) -> None:
    def fill() -> None:
        with atomic_folder(tmp_path / "made", kept) as part:
            (part / "inner").mkdir()
            with atomic_file(part / "inner" / "weights"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(UserError) as caught:
        fill()
    said = f"The disk under {re.escape(str(tmp_path / named))} is full. {advice}"
    assert re.fullmatch(said, str(caught.value))
    assert names(tmp_path) == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOTDIR])
def test_a_place_that_cannot_be_written_is_a_sentence(number: int) -> None:
    with pytest.raises(UserError, match="Nothing can be written to /data"), disk_errors(Path("/data")):
        raise OSError(number, os.strerror(number))


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(OSError, match="Input/output error"), disk_errors(Path("/data")):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
