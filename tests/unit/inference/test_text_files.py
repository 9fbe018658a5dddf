"""Texts out of files: every row, in order, or a sentence with its place."""

import gzip
import io
import json

import pytest

from unmask.core.errors import InputError
from unmask.inference.text_files import read_stdin_lines, read_texts


def texts(*paths, field="text"):
    return list(read_texts([str(path) for path in paths], field))


def test_every_line_is_a_text_even_an_empty_one(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeff今天\r\n\n天气".encode())
    assert texts(tmp_path / "a.txt") == ["今天", "", "天气"]


def test_rows_of_json_and_of_tables_give_their_field(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "一", "n": 1}\n\n{"text": "二"}\n')
    (tmp_path / "b.csv").write_text('id,review\n1,"好, 很\n好"\n\n2,差\n')
    (tmp_path / "c.tsv").write_text('review\tlabel\n"quoted\t1\nplain\t0\n')
    assert texts(tmp_path / "a.jsonl") == ["一", "二"]
    assert texts(tmp_path / "b.csv", tmp_path / "c.tsv", field="review") == ["好, 很\n好", "差", '"quoted', "plain"]


def test_packed_files_are_unpacked(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress("text\n一\n二\n".encode()))
    assert texts(tmp_path / "a.csv.gz") == ["一", "二"]
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"one\ntwo\n")[:-9])
    with pytest.raises(InputError, match=r"b\.txt\.gz cannot be read: .*truncated"):
        texts(tmp_path / "b.txt.gz")


@pytest.mark.parametrize(("given", "wanted"), [("一\n\n二", ["一", "", "二"]), ('{"text": "一"}', ["一"]), ("", [])])
def test_standard_input_is_lines_or_json_lines(given, wanted, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    assert texts("-") == wanted


def test_lines_for_people_leave_blank_ones_out(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("{一\n \n二\n".encode())))
    assert list(read_stdin_lines()) == ["{一", "二"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "今天天气很好\n".encode("gb18030"), r"a\.txt:1: invalid UTF-8.*iconv"),
        ("a.jsonl", b'{"text": "x"}\n{"text": 3}', r"a\.jsonl:2: there is no text under 'text'"),
        ("a.jsonl", b'{"body": "x"}', r"the row has body\. Name the field.*--field"),
        ("a.jsonl", b'{"text": "x"', r"a\.jsonl:1: broken JSON"),
        ("a.jsonl", json.dumps({"text": "a\ud800"}).encode(), r"a\.jsonl:1: .*half of a surrogate"),
        ("a.csv", b"body\n", r"no column 'text'; the first line names body\."),
        ("a.csv", b"", "the first line names nothing"),
        ("a.csv", b"text,n\nx\n", r"a\.csv:2: 1 cells, where the first line has 2"),
        ("a.pdf", b"", r"not of a kind that is read here: \.txt, \.jsonl, \.csv or \.tsv"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        texts(tmp_path / name)


def test_a_missing_file_is_told_before_the_first_is_read(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    with pytest.raises(InputError, match="no such file"):
        next(read_texts([str(tmp_path / "a.txt"), str(tmp_path / "gone.txt")], "text"))
