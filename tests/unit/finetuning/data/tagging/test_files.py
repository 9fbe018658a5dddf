"""Tagged sentences from all forms of files; every broken one is refused with its line."""

from __future__ import annotations

import gzip

import pytest
from little_task import write_lines

from unmask.core.errors import InputError
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.tagging.files import read_tagging
from unmask.finetuning.data.tagging.sentences import TaggedSentence
from unmask.finetuning.task_data import infer_task_type
from unmask.finetuning.tasks.protocol import TaskType

TOKENS = {"tokens": ["EU", "rejects"], "pos": ["NNP", "VBZ"], "tags": ["B-ORG", "O"]}
TEXT = "李白 wrote in 长安。"
ENTITIES = [{"start": 0, "end": 2, "label": "PER"}, {"start": 12, "end": 14, "type": "LOC", "text": "长安"}]


def file_of(tmp_path, text: str, name: str = "train.conll"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_hold_words_first_and_tags_last(tmp_path):
    text = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\nPeter NNP B-PER\n"
    path = file_of(tmp_path, text)
    sheet, choice = read_tagging(path)
    assert sheet.examples == (
        TaggedSentence(("EU", "rejects"), ("B-ORG", "O")),
        TaggedSentence(("Peter",), ("B-PER",)),
    )
    assert sheet.source_lines == (f"{path}:3", f"{path}:6")
    assert choice == ColumnChoice(("1",), "3")
    assert read_tagging(path, ColumnChoice((), "2"))[0].examples[0].truth == ("NNP", "VBZ")
    assert read_tagging(path, choice, truths=False)[0].examples[1] == TaggedSentence(("Peter",))


def test_packed_columns_and_other_endings(tmp_path):
    for name in ("a.bio", "a.txt", "a.tsv", "a.bmes"):
        assert read_tagging(file_of(tmp_path, "EU\tB-ORG\nrejects\tO\n", name))[0].examples[0].words == (
            "EU",
            "rejects",
        )
    (tmp_path / "b.conll.gz").write_bytes(gzip.compress("欧 B-ORG\n盟 I-ORG\n".encode()))
    assert read_tagging(tmp_path / "b.conll.gz")[0].examples[0].truth == ("B-ORG", "I-ORG")


def test_objects_with_lists_take_tags_unless_told_otherwise(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [TOKENS])
    sheet, choice = read_tagging(path)
    assert (sheet.examples[0].truth, choice) == (("B-ORG", "O"), ColumnChoice(("tokens",), "tags"))
    assert read_tagging(path, ColumnChoice((), "pos"))[0].examples[0].truth == ("NNP", "VBZ")
    numbers = write_lines(tmp_path / "b.jsonl", [{"words": ["EU"], "ner_tags": [3]}])
    assert read_tagging(numbers)[0].examples[0].truth == ("3",)


def test_running_text_is_cut_into_words_and_entities_become_tags(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [{"text": TEXT, "entities": ENTITIES}])
    (question,) = read_tagging(path)[0].examples
    assert question.words == ("李", "白", "wrote", "in", "长", "安", "。")
    assert question.truth == ("B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "O")
    assert question.source_span(4, 6) == (12, 14)
    assert question.text(1, 4) == "白 wrote in"
    new = write_lines(tmp_path / "new.jsonl", [{"text": TEXT}])
    assert read_tagging(new, ColumnChoice(("tokens",), "tags"), truths=False)[0].examples[0].words == question.words


def test_entities_inside_words_are_widened_and_it_is_said(tmp_path):
    row = {"text": "Peters house", "entities": [{"start": 0, "end": 5, "label": "PER"}]}
    sheet, _ = read_tagging(write_lines(tmp_path / "a.jsonl", [row]))
    assert sheet.examples[0].truth == ("B-PER", "O")
    assert "1 entities that begin or end inside a word were widened" in sheet.notes[0]


def test_a_text_with_a_tag_for_each_character_or_word(tmp_path):
    rows = [{"text": "李 白", "tags": ["B", "O", "E"]}, {"text": "Li Bai wrote", "tags": ["B", "E", "O"]}]
    questions = read_tagging(write_lines(tmp_path / "a.jsonl", rows))[0].examples
    assert [question.words for question in questions] == [("李", " ", "白"), ("Li", "Bai", "wrote")]


def test_plain_lines_can_be_answered(tmp_path):
    path = file_of(tmp_path, f"{TEXT}\n\nEU rejects\n", "new.txt")
    sheet, _ = read_tagging(path, ColumnChoice(("1",), "4"), truths=False)
    assert [len(question.words) for question in sheet.examples] == [7, 2]
    assert sheet.source_lines[1] == f"{path}:3"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "words in 'tokens': 2, tags in 'tags': 1"),
        ({"tokens": ["a", ""], "tags": ["O", "O"]}, "word 2 of 'tokens' should be text and is an empty word"),
        ({"tokens": ["a", 7], "tags": ["O", "O"]}, "word 2 of 'tokens' should be text and is a number"),
        ({"tokens": [], "tags": []}, "no word in 'tokens'"),
        ({"tokens": ["a"], "tags": [""]}, "tag 1 of 'tags' is missing"),
        ({"tokens": ["a"], "tags": "O"}, "'tags' should hold a list and holds text"),
        ({"tokens": ["a"]}, "there is no column 'tags'"),
        ({"tokens": "a b c", "tags": ["O", "O"]}, "characters of the text: 5, words between spaces: 3, tags: 2"),
    ],
)
def test_rows_that_do_not_match_are_refused(tmp_path, row, said):
    path = write_lines(tmp_path / "a.jsonl", [{"tokens": ["a"], "tags": ["O"]}, row])
    with pytest.raises(InputError, match=f":2: .*{said}"):
        read_tagging(path)


@pytest.mark.parametrize(
    ("entities", "said"),
    [
        ([{"start": 3, "end": 99, "label": "X"}], "is at 3 to 99, and the text has 15 characters"),
        ([{"start": 0, "end": 2, "label": "X", "text": "杜甫"}], "'杜甫' is not at 0 to 2"),
        ([*ENTITIES, {"start": 1, "end": 8, "label": "X"}], "two entities hold the word '白'"),
        ([{"start": 0, "end": 2}], "needs start and end"),
        ([{"start": "0", "end": 2, "label": "X"}], "needs start and end"),
        ([{"start": 2, "end": 3, "label": "X"}], "holds no word"),
        ([ENTITIES[0], 7], "should be an object"),
    ],
)
def test_entities_that_the_text_does_not_hold_are_refused(tmp_path, entities, said):
    path = write_lines(tmp_path / "a.jsonl", [{"text": TEXT, "entities": entities}])
    with pytest.raises(InputError, match=f":1: .*{said}"):
        read_tagging(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tO\n\tO\n", ":2: column 1 is empty"),
        ("a\tO\nb\t\n", ":2: column 2 is empty"),
        ("a O\nb\n", ":2: the number of columns is 1"),
        ("a\nb\n", ":1: the first word has one column"),
        ("\n\n", "holds no sentences. It needs a line for each word and, for training, its tag"),
    ],
)
def test_broken_columns_are_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        read_tagging(file_of(tmp_path, text))


def test_columns_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(InputError, match="no column 'pos'; columns have numbers from 1 to 2"):
        read_tagging(file_of(tmp_path, "a O\n"), ColumnChoice((), "pos"))


def test_the_kind_is_guessed_from_form_and_fields(tmp_path):
    assert infer_task_type(tmp_path / "a.conll.gz", ColumnChoice()) is TaskType.TAGGING
    assert infer_task_type(write_lines(tmp_path / "a.jsonl", [TOKENS]), ColumnChoice()) is TaskType.TAGGING
    assert (
        infer_task_type(write_lines(tmp_path / "b.jsonl", [{"text": TEXT, "entities": []}]), ColumnChoice())
        is TaskType.TAGGING
    )
    assert (
        infer_task_type(write_lines(tmp_path / "c.jsonl", [{"text": TEXT, "label": "a"}]), ColumnChoice())
        is TaskType.CLASSIFICATION
    )
