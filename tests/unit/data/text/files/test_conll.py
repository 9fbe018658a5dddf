"""Words in columns: sentences, comments, tabs and spaces; broken lines are refused with their number."""

from __future__ import annotations

import pytest

from unmask.core.errors import InputError
from unmask.data.text.files.conll import read_conll


def read(text: str):
    return [(one.where, one.words) for one in read_conll(iter(text.encode().split(b"\n")), "f.conll")]


def test_blank_lines_and_document_lines_stand_between_sentences():
    text = "-DOCSTART- -X- O\n\n\nEU NNP B-ORG\nrejects VBZ O\n \t\nPeter NNP B-PER\n-DOCSTART- -X- O\nLondon NNP B-LOC"
    assert read(text) == [
        ("f.conll:4", (("EU", "NNP", "B-ORG"), ("rejects", "VBZ", "O"))),
        ("f.conll:7", (("Peter", "NNP", "B-PER"),)),
        ("f.conll:9", (("London", "NNP", "B-LOC"),)),
    ]


def test_a_comment_is_no_word_and_a_number_sign_is_one():
    text = "# id = 7\t# made by hand\n#\tSYM\n1\tCD\n\n# text = a\nb\tX\n#\tSYM"
    assert [words for _, words in read(text)] == [(("#", "SYM"), ("1", "CD")), (("b", "X"), ("#", "SYM"))]


def test_words_may_hold_spaces_between_tabs_and_be_odd_spaces_between_spaces():
    assert read("New York\tB-LOC\r\n is \tO")[0][1] == (("New York", "B-LOC"), (" is ", "O"))
    assert read("\u3000  O\n\xa0 O")[0][1] == (("\u3000", "O"), ("\xa0", "O"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a O\nb\nc O", "f.conll:2: the number of columns is 1 here and 2 at the first word"),
        ("a\tO\n\nb O", "f.conll:3: the number of columns is 1"),
        ("a O\n# b c O", "f.conll:2: the number of columns is 4"),
    ],
)
def test_a_line_with_other_columns_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        read(text)


def test_another_encoding_is_refused_with_its_line():
    with pytest.raises(InputError, match=r"f\.conll:2: .*GBK"):
        list(read_conll(iter([b"a O", "今天天气 O".encode("gbk")]), "f.conll"))


def test_a_file_without_words_has_no_sentences():
    assert read("") == read("\n \n-DOCSTART-\n") == []
