"""Files of rows: every row with its place, whatever the form; and what cannot be a row."""

import gzip

import pytest

from unmask.core.errors import InputError
from unmask.data.text.files.delimited import (
    FORMATS_WITH_COLUMNS,
    TableFormat,
    byte_lines,
    decode_lines,
    find_file,
    read_table,
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def put(name, content):
        data = content if isinstance(content, bytes) else content.encode()
        path = (tmp_path / name).relative_to(tmp_path)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return put


def read(path, numbered=False):
    source, form = find_file(path, FORMATS_WITH_COLUMNS)
    table = read_table(byte_lines(source), source.name, form, numbered)
    return table.columns, [(row.where, *row.fields.values()) for row in table.rows]


FORMS = {
    "a.jsonl": '{"text": "好，很好", "n": "1"}\n\n{"text": "a \\"b\\"", "n": "2"}\n',
    "a.jsonl.gz": '\ufeff{"text": "好，很好", "n": "1"}\r\n\r\n{"text": "a \\"b\\"", "n": "2"}',
    "a.csv": 'text,n\n"好，很好",1\n"a ""b""",2\n',
    "a.CSV.gz": '\ufeff text , n \r\n"好，很好",1\r\n"a ""b""",2\r\n',
    "a.tsv": 'text\tn\n好，很好\t1\na "b"\t2\n',
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_rows(write, name):
    columns, rows = read(write(name, FORMS[name]))
    assert columns == ("text", "n")
    assert [row[1:] for row in rows] == [("好，很好", "1"), ('a "b"', "2")]
    assert rows[1][0] == f"{name}:3"


def test_a_quoted_cell_may_hold_lines_and_places_are_still_those_of_the_file(write):
    path = write("a.csv", 'text,n\n"one\ntwo",1\n\nthree,0\n')
    assert read(path)[1] == [("a.csv:2", "one\ntwo", "1"), ("a.csv:5", "three", "0")]


def test_columns_without_names_are_counted_from_one(write):
    path = write("a.tsv", "真好\t1\n真坏\t0\n")
    assert read(path, numbered=True) == (("1", "2"), [("a.tsv:1", "真好", "1"), ("a.tsv:2", "真坏", "0")])
    assert read(write("empty.tsv", ""), numbered=True) == ((), [])


def test_a_table_without_rows_still_has_its_columns(write):
    assert read(write("a.csv", "text,n\n")) == (("text", "n"), [])
    assert read(write("a.jsonl", "\n")) == ((), [])


def test_empty_columns_that_a_program_left_behind_do_no_harm(write):
    columns, rows = read(write("a.csv", "text,,\nx,,\n"))
    assert columns == ("text", "", "")
    assert rows == [("a.csv:2", "x", "")]


def test_rows_are_read_one_by_one(write):
    table = read_table(
        byte_lines(find_file(write("a.csv", 'text\none\n"torn'), FORMATS_WITH_COLUMNS)[0]), "a.csv", TableFormat.COMMAS
    )
    assert next(table.rows).fields == {"text": "one"}
    with pytest.raises(InputError):
        next(table.rows)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", '{"text": 1}\n{"text": \n', r"a\.jsonl:2: broken JSON .* Correct the line, or remove it\."),
        ("a.jsonl", "[1, 2]\n", r"a\.jsonl:1: broken JSON .*not an object"),
        ("a.csv", "text,n\nx\n", r"a\.csv:2: 1 cells, where the first line has 2\. Correct the line"),
        ("a.csv", 'text\nx\n"a\nb\n', r"a\.csv:3: unexpected end of data, in the row that begins here"),
        ("a.csv", b"text,n\nabc,1\n\xff\xfe,0\n", r"a\.csv:3: invalid UTF-8 .*iconv -f ENCODING"),
        ("a.csv", "n,text,text\na,1,2\n", r"a\.csv:1: two columns have the name 'text'\. Rename one"),
        ("a.csv", "text\n".encode("utf-16"), r"a\.csv cannot be read: the file is UTF-16"),
        ("a.txt", "x", r"a\.txt is not of a kind that is read here: \.jsonl, \.csv or \.tsv, each"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(write, name, content, said):
    with pytest.raises(InputError, match=said):
        read(write(name, content))


def test_a_packed_file_that_was_cut_off_and_one_that_is_not_there_are_told(write, tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a", "label": 1}\n' * 99)[:-20])
    with pytest.raises(InputError, match=r"a\.jsonl\.gz cannot be read: .*truncated"):
        read(tmp_path / "a.jsonl.gz")
    with pytest.raises(
        InputError, match=r"none\.jsonl: there is no such file\. Check the name, and the folder"
    ) as error:
        read(tmp_path / "none.jsonl")
    assert ".csv" not in str(error.value)  # the ending is not what is wrong
    with pytest.raises(
        InputError, match=r"is a folder\. Give the path of a file that ends with \.jsonl, \.csv or \.tsv\."
    ):
        read(tmp_path)


def test_lines_are_texts_without_their_ends(write):
    source, form = find_file(write("a.txt", "今天\r\n\n天气"), tuple(TableFormat))
    assert form is TableFormat.LINES
    assert list(decode_lines(byte_lines(source), source.name)) == ["今天", "", "天气"]
