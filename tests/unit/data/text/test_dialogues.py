"""Conversations are read from JSON lines and from plain text; what is none is left out, with its file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from unmask.core.records import Document, DroppedInput, UnitKind
from unmask.data.text.clean import Cleaner
from unmask.data.text.dialogues import make_dialogue, parse_dialogue
from unmask.data.text.files.lines import RawRow
from unmask.data.text.files.read import ReadConfig, read_documents


def turns(document: Document | DroppedInput) -> list[tuple[str, str]]:
    """Who says what."""
    assert isinstance(document, Document)
    marks = document.char_spans[UnitKind.TURN]
    texts = [document.text[a:b] for a, b in zip(marks.spans.start.tolist(), marks.spans.end.tolist(), strict=True)]
    return list(zip(marks.labels, texts, strict=True))


def made(value: object, longest: int = 100) -> Document | DroppedInput:
    return parse_dialogue(RawRow("talks.jsonl:3", {"turns": value}), longest)


def test_two_sides_alternate_where_no_role_is_given() -> None:
    found = made(["你好", " 你好呀\n", "再见"])
    assert turns(found) == [("Q", "你好"), ("R", "你好呀"), ("Q", "再见")]
    assert isinstance(found, Document)
    assert found.text == "你好\n你好呀\n再见"
    assert found.id == "talks.jsonl:3"


def test_roles_are_kept_as_they_are_given() -> None:
    spoken = [("Q", "在吗"), ("q", "有人吗"), ("assistant", "在"), ("R", "请说"), ("user", "好")]
    found = made([{"role": role, "text": text} for role, text in spoken])
    assert [role for role, _ in turns(found)] == ["Q", "Q", "R", "R", "Q"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a\nb", "field 'turns' holds str, not a list"),
        ([], "a dialogue has at least 2 turns, this one has 0"),
        (["a"], "a dialogue has at least 2 turns, this one has 1"),
        (["a", 5], "turn 2 has no text, but int '5'"),
        (["a", {"role": "Q"}], "turn 2 has no text, but dict"),
        (["a", " \n"], "turn 2 is empty"),
        ([{"role": "X", "text": "a"}, "b"], "turn 1 has the role 'X'; known are Q and R"),
        ([{"role": "Q", "text": "a"}, "b"], "turn 2 has no role, although others have"),
        (["a" * 60, "b" * 60], "it has more than 100 characters"),
    ],
)
def test_what_is_no_conversation_is_left_out_with_a_reason(value: object, why: str) -> None:
    found = made(value)
    assert isinstance(found, DroppedInput)
    assert (found.reason, found.where) == ("unusable dialogue", "talks.jsonl:3")
    assert why in found.detail


def test_files_of_both_kinds_are_read_beside_ordinary_text(tmp_path: Path) -> None:
    news, lines, plain = tmp_path / "news.txt", tmp_path / "talks.jsonl.gz", tmp_path / "talks.txt"
    news.write_text("一篇文章。\n它有两行。\n", encoding="utf-8")
    rows = ['{"turns": ["在吗", "在"]}', "", '{"turns": 3}', '{"text": "不是"}', '{"turns": [']
    lines.write_bytes(gzip.compress("\n".join(rows).encode()))
    plain.write_text("吃了吗\r\n吃了\n\n\n一个人说话\n\n走吧\n好\n", encoding="utf-8")
    reading = ReadConfig(dialogue_files=frozenset({lines.resolve(), plain.resolve()}))
    found = list(read_documents([str(news), str(lines), str(plain)], reading))
    documents = [piece for piece in found if isinstance(piece, Document)]
    assert [document.id for document in documents] == ["news.txt:1", "talks.jsonl.gz:1", "talks.txt:1", "talks.txt:7"]
    assert UnitKind.TURN not in documents[0].char_spans
    assert [turns(document) for document in documents[1:]] == [
        [("Q", "在吗"), ("R", "在")],
        [("Q", "吃了吗"), ("R", "吃了")],
        [("Q", "走吧"), ("R", "好")],
    ]
    left = [(piece.where, piece.reason) for piece in found if isinstance(piece, DroppedInput)]
    assert left == [
        ("talks.jsonl.gz:3", "unusable dialogue"),
        ("talks.jsonl.gz:4", "unusable dialogue"),
        ("talks.jsonl.gz:5", "broken JSON"),
        ("talks.txt:5", "unusable dialogue"),
    ]


def test_cleaning_moves_turns_with_their_text() -> None:
    document = made(json.loads(r'["a\u0000b", "\u0000", "c\u0007\u0007d"]'))
    assert isinstance(document, Document)
    cleaned = Cleaner()(document).result
    assert turns(cleaned) == [("Q", "ab"), ("Q", "cd")]


def test_a_written_dialogue_is_the_same_as_one_that_was_read() -> None:
    assert turns(make_dialogue("x", ["a", "b", "c"])) == turns(made(["a", "b", "c"]))


def test_where_the_files_lie_is_no_setting(tmp_path: Path) -> None:
    """So that an unfinished corpus can be moved, and one that was begun before there were dialogues goes on."""
    assert repr(ReadConfig(dialogue_files=frozenset({tmp_path}))) == repr(ReadConfig())
