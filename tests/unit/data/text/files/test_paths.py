"""Which files a user meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unmask.core.errors import InputError
from unmask.data.text.files.paths import Compression, FileFormat, expand_paths, total_bytes


def write(path: Path, data: bytes = b"x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_folder_is_searched_recursively_in_sorted_order_and_unknown_files_are_passed_over(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.jsonl.gz", "a/notes.md", "c.parquet.zst", "d.NDJSON"):
        write(tmp_path / name)
    found = expand_paths([str(tmp_path)])
    assert [(s.name, s.format, s.compression) for s in found] == [
        ("a/z.jsonl.gz", FileFormat.JSON_LINES, Compression.GZIP),
        ("b.txt", FileFormat.TEXT, Compression.PLAIN),
        ("c.parquet.zst", FileFormat.PARQUET, Compression.ZSTANDARD),
        ("d.NDJSON", FileFormat.JSON_LINES, Compression.PLAIN),
    ]


def test_a_pattern_matches_files_and_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    first, second = write(tmp_path / "1.txt"), write(tmp_path / "2.txt")
    write(tmp_path / "3.md")
    found = expand_paths([str(second), str(tmp_path / "*")])
    assert [s.path for s in found] == [second, first]


def test_two_files_of_the_same_name_get_names_that_differ(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x.txt")
    write(tmp_path / "b" / "x.txt")
    names = [s.name for s in expand_paths([str(tmp_path / "a"), str(tmp_path / "b")])]
    assert len(set(names)) == 2


def test_the_total_is_the_size_on_disk(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", b"12345")
    write(tmp_path / "b" / "c.jsonl", b"{}\n")
    assert total_bytes([str(tmp_path)]) == 8
    assert total_bytes(["-"]) == 0


def test_only_the_listed_arrow_files_of_a_saved_data_set_count(tmp_path: Path) -> None:
    write(tmp_path / "train" / "data-00000-of-00001.arrow")
    write(tmp_path / "train" / "cache-123.arrow")
    state = json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})
    write(tmp_path / "train" / "state.json", state.encode())
    assert [s.name for s in expand_paths([str(tmp_path)])] == ["train/data-00000-of-00001.arrow"]


@pytest.mark.parametrize("given", ["nothing.txt", "*.txt", "folder", "notes.md", "*.md"])
def test_what_leads_to_no_file_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    write(tmp_path / "notes.md")
    with pytest.raises(InputError, match=given.replace("*", r"\*")):
        expand_paths([given])


def test_no_source_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="No input"):
        expand_paths([])


def test_hidden_files_are_no_text(tmp_path):
    for name in ("a.txt", ".git/b.txt", ".hidden.txt", "sub/.ipynb_checkpoints/c.txt", "sub/d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text", encoding="utf-8")
    assert [source.name for source in expand_paths([str(tmp_path)])] == ["a.txt", "sub/d.txt"]
