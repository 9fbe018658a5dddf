"""Reading any pile of text: what comes out, what is dropped, and that nothing else is lost."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from unmask.core.errors import InputError
from unmask.core.records import Document, DroppedInput, UnitKind
from unmask.data.text.drop_reasons import DropReason
from unmask.data.text.files.decompress import split_lines
from unmask.data.text.files.lines import DocumentLayout
from unmask.data.text.files.paths import total_bytes
from unmask.data.text.files.read import ReadConfig, read_documents
from unmask.data.text.units.sentences import SENTENCE_ENDS, split_long

ROWS = [{"text": "今天天气很好。"}, {"text": "The second\ndocument."}, {"text": "第三篇 👍🏽"}]
TEXTS = [row["text"] for row in ROWS]
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()


def save(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def texts(pieces: Iterator[Document | DroppedInput]) -> list[str]:
    return [piece.text for piece in pieces if isinstance(piece, Document)]


def split(pieces: Iterator[Document | DroppedInput]) -> tuple[list[Document], list[DroppedInput]]:
    both = list(pieces)
    return [p for p in both if isinstance(p, Document)], [p for p in both if isinstance(p, DroppedInput)]


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".zst", zstandard.compress)])
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("jsonl", JSONL),
        ("ndjson", JSONL),
        ("txt", "\n\n".join(TEXTS).encode()),
        ("parquet", parquet(pa.table({"text": TEXTS}))),
    ],
)
def test_every_kind_is_read_plain_and_packed(tmp_path: Path, kind: str, data: bytes, suffix: str, pack: type) -> None:
    path = save(tmp_path, f"a.{kind}{suffix}", pack(data))
    documents, dropped = split(read_documents([path]))
    assert [d.text for d in documents] == TEXTS
    assert not dropped
    assert len({d.id for d in documents}) == 3
    assert all(d.id.startswith(f"a.{kind}{suffix}:") for d in documents)


def test_a_saved_data_set_is_read(tmp_path: Path) -> None:
    table = pa.table({"text": TEXTS, "label": [1, 2, 3]})
    with pa.OSFile(str(tmp_path / "data-0.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    save(tmp_path, "state.json", json.dumps({"_data_files": [{"filename": "data-0.arrow"}]}).encode())
    assert texts(read_documents([str(tmp_path)])) == TEXTS


def test_ids_name_the_line_where_a_document_begins(tmp_path: Path) -> None:
    path = save(tmp_path, "a.txt", b"\n\none\nmore\n \t\n\ntwo\r\nx\r\n\r\nthree")
    documents = list(read_documents([path]))
    assert [(d.id, d.text) for d in documents if isinstance(d, Document)] == [
        ("a.txt:3", "one\nmore"),
        ("a.txt:7", "two\nx"),
        ("a.txt:10", "three"),
    ]


def test_one_document_a_line(tmp_path: Path) -> None:
    path = save(tmp_path, "a.txt", b"one\r\n\ntwo\nthree")
    documents, _ = split(read_documents([path], ReadConfig(layout=DocumentLayout.LINE)))
    assert [(d.id, d.text) for d in documents] == [("a.txt:1", "one"), ("a.txt:3", "two"), ("a.txt:4", "three")]


def test_another_field_may_hold_the_text_and_the_id(tmp_path: Path) -> None:
    path = save(tmp_path, "a.jsonl", b'{"body": "hello", "key": 7}\n{"body": "there"}\n')
    documents, _ = split(read_documents([path], ReadConfig(field="body", id_field="key")))
    assert [(d.id, d.text) for d in documents] == [("7", "hello"), ("a.jsonl:2", "there")]


def test_bad_lines_cost_only_themselves(tmp_path: Path) -> None:
    lines = [
        b'{"text": "good 1"}',
        b'{"text": "bro',
        b'{"text": "\xff\xfe bytes"}',
        b'{"other": "x"}',
        b'{"text": 5}',
        b'["text"]',
        b"",
        b'{"text": "good 2"}',
    ]
    documents, dropped = split(read_documents([save(tmp_path, "a.jsonl", b"\n".join(lines))]))
    assert [d.text for d in documents] == ["good 1", "good 2"]
    assert [(d.reason, d.where) for d in dropped] == [
        (DropReason.BROKEN_JSON, "a.jsonl:2"),
        (DropReason.INVALID_UTF8, "a.jsonl:3"),
        (DropReason.MISSING_FIELD, "a.jsonl:4"),
        (DropReason.NOT_TEXT, "a.jsonl:5"),
        (DropReason.BROKEN_JSON, "a.jsonl:6"),
    ]


def test_invalid_utf8_in_plain_text_drops_its_document_and_names_the_line(tmp_path: Path) -> None:
    path = save(tmp_path, "a.txt", b"fine\n\nbad\nhere \xc3(\n\nalso fine\n")
    documents, dropped = split(read_documents([path]))
    assert [d.text for d in documents] == ["fine", "also fine"]
    assert [(d.reason, d.where) for d in dropped] == [(DropReason.INVALID_UTF8, "a.txt:4")]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.compress)])
def test_a_cut_off_file_gives_what_can_be_had_and_the_next_file_is_read(
    tmp_path: Path, suffix: str, pack: type
) -> None:
    many = "".join(json.dumps({"text": f"row {i} {i * 2654435761 % 2**32}"}) + "\n" for i in range(60_000)).encode()
    packed = pack(many)
    save(tmp_path, f"a.jsonl{suffix}", packed[: len(packed) // 2])
    save(tmp_path, "b.jsonl", JSONL)
    documents, dropped = split(read_documents([str(tmp_path)]))
    first = [d.text for d in documents if d.id.startswith("a.")]
    assert len(first) > 1000
    assert first == [json.loads(line)["text"] for line in many.splitlines()[: len(first)]]
    assert [d.text for d in documents[len(first) :]] == TEXTS
    assert [d.reason for d in dropped] == [DropReason.DAMAGED_FILE]
    assert dropped[0].where == f"a.jsonl{suffix}:{len(first)}"
    assert "a.jsonl" not in dropped[0].detail
    assert dropped[0].detail.endswith("everything up to here was read")


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "a.parquet", "a.arrow"])
def test_a_file_that_is_not_what_it_says_is_dropped(tmp_path: Path, name: str) -> None:
    documents, dropped = split(read_documents([save(tmp_path, name, b"this is no such file at all")]))
    assert not documents
    assert [(d.reason, d.where) for d in dropped] == [(DropReason.DAMAGED_FILE, name)]


def test_packed_streams_one_after_another_are_all_read(tmp_path: Path) -> None:
    halves = JSONL.splitlines(keepends=True)
    both = gzip.compress(halves[0], mtime=0) + gzip.compress(halves[1] + halves[2], mtime=0) + b"\0" * 512
    assert texts(read_documents([save(tmp_path, "a.jsonl.gz", both)])) == TEXTS


def test_parquet_without_the_column_or_with_other_values_is_dropped_with_its_columns_named(tmp_path: Path) -> None:
    save(tmp_path, "a.parquet", parquet(pa.table({"body": ["x"]})))
    save(tmp_path, "b.parquet", parquet(pa.table({"text": [1, 2]})))
    save(tmp_path, "c.parquet", parquet(pa.table({"text": ["ok", None]})))
    documents, dropped = split(read_documents([str(tmp_path)]))
    assert [d.text for d in documents] == ["ok"]
    assert [(d.reason, d.where) for d in dropped] == [
        (DropReason.MISSING_FIELD, "a.parquet"),
        (DropReason.NOT_TEXT, "b.parquet"),
        (DropReason.NOT_TEXT, "c.parquet:2"),
    ]
    assert "body" in dropped[0].detail


def test_one_row_of_a_table_that_is_not_utf8_costs_that_row(tmp_path: Path) -> None:
    raw = pa.array([b"one", b"\xff", b"three"]).view(pa.string())
    documents, dropped = split(read_documents([save(tmp_path, "a.parquet", parquet(pa.table({"text": raw})))]))
    assert [d.text for d in documents] == ["one", "three"]
    assert [(d.reason, d.where) for d in dropped] == [(DropReason.INVALID_UTF8, "a.parquet:2")]


def test_empty_vanished_and_unreadable_files_are_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    save(tmp_path, "a.txt", b"")
    save(tmp_path, "b.txt", b"gone soon")
    (tmp_path / "c.txt").symlink_to(tmp_path / "nowhere")
    save(tmp_path, "d.txt", b"here")
    pieces = read_documents([str(tmp_path)])
    (tmp_path / "b.txt").unlink()
    documents, dropped = split(pieces)
    assert [d.text for d in documents] == ["here"]
    assert [(d.reason, d.where) for d in dropped] == [
        (DropReason.EMPTY_FILE, "a.txt"),
        (DropReason.UNREADABLE_FILE, "b.txt"),
        (DropReason.UNREADABLE_FILE, "c.txt"),
    ]


def test_a_missing_source_is_refused_before_the_first_document() -> None:
    with pytest.raises(InputError, match="no such file"):
        read_documents(["/does/not/exist.txt"])


def test_byte_order_marks(tmp_path: Path) -> None:
    assert texts(read_documents([save(tmp_path, "a.txt", b"\xef\xbb\xbfhello")])) == ["hello"]
    documents, dropped = split(read_documents([save(tmp_path, "b.txt", "你好".encode("utf-16"))]))
    assert not documents
    assert dropped[0].reason == DropReason.OTHER_ENCODING
    assert "UTF-16" in dropped[0].detail
    assert "b.txt" not in dropped[0].detail


ICONV = "iconv -f GB18030 -t UTF-8 FILE"


@pytest.mark.parametrize(
    ("data", "gbk"),
    [
        ("今天天气很好，我们去公园散步。".encode("gbk"), True),
        ('{"text": "他说：机器学习很有意思。"}'.encode("gb18030"), True),
        ("Le café est fermé à Noël, déjà vu.".encode("latin-1"), False),
        ("Сегодня хорошая погода".encode("cp1251"), False),
        ("今天天气很好".encode()[:-1], False),
        (b"plain \xff", False),
    ],
)
def test_chinese_in_another_encoding_is_recognised(tmp_path: Path, data: bytes, gbk: bool) -> None:
    for name in ("a.txt", "a.jsonl"):
        _, dropped = split(read_documents([save(tmp_path, name, data)]))
        assert [d.reason for d in dropped] == [DropReason.INVALID_UTF8]
        assert dropped[0].detail.endswith(ICONV) == gbk
        assert ("it looks like GBK" in dropped[0].detail) == gbk


def test_other_files_of_a_folder_are_counted(tmp_path: Path) -> None:
    save(tmp_path, "a.txt", b"here")
    (tmp_path / "deep").mkdir()
    for name in ("b.csv", "c.PDF", "deep/d.csv", "README", ".hidden.csv", "state.json"):
        save(tmp_path, name, b"x")
    documents, dropped = split(read_documents([str(tmp_path)]))
    assert [d.text for d in documents] == ["here"]
    detail = "skipped 4 files of unknown kind (.csv, .pdf, no ending)"
    assert dropped == [DroppedInput(DropReason.UNKNOWN_KIND, str(tmp_path), detail)]
    assert not split(read_documents([str(tmp_path / "a.txt")]))[1]


@pytest.mark.parametrize(
    "data", [JSONL, "\n\n".join(TEXTS).encode(), gzip.compress(JSONL, mtime=0), zstandard.compress(JSONL)]
)
def test_standard_input_is_told_by_its_first_bytes(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    documents, dropped = split(read_documents(["-"]))
    assert [d.text for d in documents] == TEXTS
    assert documents[0].id == "stdin:1"
    assert not dropped


def test_entities_come_with_the_document_and_bad_ones_are_reported(tmp_path: Path) -> None:
    row = {
        "text": "张伟在北京。",
        "names": [[3, 5, "place"], {"start": 0, "end": 2, "label": "person"}, [4, 6, "late"], [2, 99, "far"], "odd"],
    }
    path = save(tmp_path, "a.jsonl", json.dumps(row).encode())
    documents, dropped = split(read_documents([path], ReadConfig(entities_field="names")))
    marks = documents[0].char_spans[UnitKind.ENTITY]
    assert list(zip(marks.spans.start.tolist(), marks.spans.end.tolist(), marks.labels, strict=True)) == [
        (0, 2, "person"),
        (3, 5, "place"),
    ]
    assert [d.reason for d in dropped] == [DropReason.BAD_ENTITY] * 3


def test_a_long_text_becomes_several_documents_and_nothing_is_lost(tmp_path: Path) -> None:
    text = "这是一句话。" * 1000
    row = {"text": text, "e": [[0, 2, "x"], [5996, 5998, "y"]]}
    path = save(tmp_path, "a.jsonl", json.dumps(row).encode())
    documents, _ = split(read_documents([path], ReadConfig(entities_field="e", max_chars=100)))
    assert "".join(d.text for d in documents) == text
    assert all(len(d.text) <= 100 and d.text.endswith("。") for d in documents)
    assert len({d.id for d in documents}) == len(documents)
    last = documents[-1]
    start, end = last.char_spans[UnitKind.ENTITY].spans.start[0], last.char_spans[UnitKind.ENTITY].spans.end[0]
    assert last.text[start:end] == text[5996:5998]


def test_plain_text_without_blank_lines_does_not_pile_up(tmp_path: Path) -> None:
    lines = [f"line {number} of many" for number in range(500)]
    documents, _ = split(
        read_documents([save(tmp_path, "a.txt", "\n".join(lines).encode())], ReadConfig(max_chars=100))
    )
    assert "\n".join(d.text.strip() for d in documents).split("\n") == lines
    assert max(len(d.text) for d in documents) <= 100


def test_progress_reaches_the_total_even_where_files_are_given_up(tmp_path: Path) -> None:
    save(tmp_path, "a.jsonl.gz", gzip.compress(JSONL, mtime=0)[:30])
    save(tmp_path, "b.jsonl", JSONL)
    save(tmp_path, "c.parquet", parquet(pa.table({"text": TEXTS})))
    heard: list[int] = []
    list(read_documents([str(tmp_path)], progress=heard.append))
    assert heard == sorted(heard)
    assert heard[-1] == total_bytes([str(tmp_path)])


@given(st.lists(st.sampled_from([b"a", b"\n", b"", b"bc\n", b"\n\nd"]), max_size=30))
def test_lines_do_not_depend_on_the_blocks(blocks: list[bytes]) -> None:
    whole = b"".join(blocks)
    expected = whole.split(b"\n")
    assert list(split_lines(iter(blocks))) == (expected if expected[-1] else expected[:-1])


@given(st.text(alphabet="ab 。\n，", max_size=200), st.integers(1, 20))
def test_cutting_keeps_every_character_and_the_limit(text: str, longest: int) -> None:
    pieces = list(split_long(text, 0, len(text), longest, SENTENCE_ENDS))
    assert "".join(text[a:b] for a, b in pieces) == text
    assert all(b - a <= longest for a, b in pieces)
    assert all(a < b for a, b in pieces) or not text
