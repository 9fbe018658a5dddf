"""Task files: what is read, what is guessed, and what is refused with its line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from little_task import little_tokenizer, reviews, write_lines

from unmask.core.errors import InputError
from unmask.finetuning.data.classification import TextExample, read_classification
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice, choose_columns
from unmask.finetuning.data.dataset import ExampleSet, split_dev
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.table_file import read_task_file
from unmask.finetuning.task_data import labels_are_numbers, load_task_data
from unmask.finetuning.tasks.classification import ClassificationTask
from unmask.finetuning.tasks.regression import RegressionTask


def sheet_of(path: Path, choice: ColumnChoice = NO_COLUMN_CHOICE):
    return read_classification(path, choice)[0]


def all_texts(sheet):
    return [question.texts for question in sheet.examples]


@pytest.fixture
def write(tmp_path):
    def put(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
        return path

    return put


FORMS = {
    "a.jsonl": '{"text": "好，很好", "label": 1}\n\n{"text": "a \\"b\\"", "label": 0}\n',
    "a.jsonl.gz": '{"text": "好，很好", "label": "1"}\n{"text": "a \\"b\\"", "label": 0.0}\n',
    "a.csv": 'label,text\n1,"好，很好"\n0,"a ""b"""\n',
    "a.csv.gz": '\ufefftext,label\r\n"好，很好",1\r\n"a ""b""", 0\r\n',
    "a.tsv": 'id\ttext\tlabel\n7\t好，很好\t1\n8\ta "b"\t0\n',
    "a.TSV.gz": 'text\tlabel\n好，很好\t1\na "b"\t0\n',
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_rows(write, name):
    sheet = sheet_of(write(name, FORMS[name]))
    assert [question.texts for question in sheet.examples] == [("好，很好",), ('a "b"',)]
    assert [question.truth for question in sheet.examples] == ["1", "0"]


@pytest.mark.parametrize(
    ("columns", "texts", "label"),
    [
        ("sentence,label,source", ("sentence",), "label"),
        ("sentence1,sentence2,score,genre", ("sentence1", "sentence2"), "score"),
        ("label,hypothesis,premise", ("premise", "hypothesis"), "label"),
        ("question,sentence,label", ("question", "sentence"), "label"),
        ("question,label,fine_label", ("question",), "label"),
        ("Review,Rating", ("Review",), "Rating"),
        ("query,title,label", ("query", "title"), "label"),
        ("text,title,label", ("text",), "label"),
    ],
)
def test_usual_names_are_found(write, columns, texts, label):
    table = read_task_file(write("a.csv", f"{columns}\n{','.join('x' for _ in columns.split(','))}\n"))
    assert choose_columns(table) == ColumnChoice(texts, label)


def test_names_and_numbers_can_be_given(write):
    named = write("a.csv", "what,who,verdict\nabc,x,yes\ndef,y,no\n")
    assert all_texts(sheet_of(named, ColumnChoice(("what", "who"), "verdict"))) == [("abc", "x"), ("def", "y")]
    bare = write("b.tsv", "abc\tyes\ndef\tno\n")
    assert [question.truth for question in sheet_of(bare, ColumnChoice(("1",), "2")).examples] == ["yes", "no"]


REFUSED = {
    "unknown field": ("a.csv", "text,label\na,1\n", ColumnChoice(("body",)), "a.csv:2: there is no column 'body'"),
    "other signs": (
        "a.csv",
        "review;label\na;1\n",
        ColumnChoice(),
        "separated by ';'; a .csv file has commas, a .tsv file tabs",
    ),
    "no usual text": (
        "a.csv",
        "foo,label\na,1\n",
        ColumnChoice(),
        "no column has a usual name for a text; it has 'foo'",
    ),
    "no usual label": ("a.jsonl", '{"text": "a"}\n', ColumnChoice(), "no column has a usual name for a label"),
    "no header": ("a.tsv", "真好\t1\n真坏\t0\n", ColumnChoice(), "give column numbers: --text-columns 1"),
    "header by number": ("a.tsv", "text\tlabel\n真坏\t0\n", ColumnChoice(("1",), "2"), "the first line holds names"),
    "label by name": ("a.tsv", "真好\t1\n", ColumnChoice(("1",)), "--label-column needs one too"),
    "missing label": (
        "a.jsonl",
        '{"text": "a", "label": 1}\n{"text": "b"}\n',
        ColumnChoice(),
        "a.jsonl:2: the label is missing",
    ),
    "null label": ("a.jsonl", '{"text": "a", "label": null}\n', ColumnChoice(), "a.jsonl:1: the label is missing"),
    "empty label": ("a.csv", "text,label\na,1\nb,\n", ColumnChoice(), "a.csv:3: the label is missing"),
    "list label": (
        "a.jsonl",
        '{"text": "a", "label": [1]}\n',
        ColumnChoice(),
        "should be a word or a number and is a list",
    ),
    "no text": ("a.jsonl", '{"text": 7, "label": 1}\n', ColumnChoice(), "the column 'text' should hold text"),
    "bad JSON": ("a.jsonl", '{"text": "a", "label": 1}\n{"text": \n', ColumnChoice(), "a.jsonl:2: broken JSON"),
    "two names": ("a.csv", "text,text\na,1\n", ColumnChoice(), "two columns have the name 'text'"),
    "empty file": ("a.jsonl", "\n\n", ColumnChoice(), "holds no rows"),
    "names alone": ("a.csv", "text,label\n", ColumnChoice(), "one row per text and, for training, its label."),
    "other kind": ("a.xlsx", "x", ColumnChoice(), "is not of a kind that is read here: .jsonl, .csv or .tsv,"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_with_its_place(write, case):
    name, content, choice, sentence = REFUSED[case]
    with pytest.raises(InputError) as error:
        sheet_of(write(name, content), choice)
    assert sentence in str(error.value)


def test_wishes_that_contradict_themselves_are_refused():
    for texts, label in ((("a", "a"), ""), (("a",), "a"), (("1",), "label")):
        with pytest.raises(InputError):
            ColumnChoice(texts, label)


def labels_of(write, *labels):
    return sheet_of(write("a.jsonl", "".join(json.dumps({"text": "a", "label": one}) + "\n" for one in labels)))


def test_the_labels_decide_what_is_asked(write):
    assert not labels_are_numbers(labels_of(write, "yes", "no"))
    assert not labels_are_numbers(labels_of(write, 0, 1, 2))
    assert not labels_are_numbers(labels_of(write, 0, 1.0))
    assert labels_are_numbers(labels_of(write, 0, 1.5))
    assert labels_are_numbers(labels_of(write, "0.5", "3"))


def test_classes_are_sorted_numbers_by_size_and_words_by_letters(write):
    assert ClassificationTask.from_examples(labels_of(write, 10, 9, 2, 9)).labels == ("2", "9", "10")
    assert ClassificationTask.from_examples(labels_of(write, "neutral", "entailment", 3)).labels == (
        "3",
        "entailment",
        "neutral",
    )
    assert ClassificationTask.from_examples(labels_of(write, True, False)).labels == ("false", "true")


def test_scores_are_learned_in_their_own_units(write):
    output = RegressionTask.from_examples(labels_of(write, 10.5, 30.5))
    assert (output.mean, output.std) == (20.5, 10.0)
    exercise = output.encode(labels_of(write, 10.5, 20.5, 40.5), little_tokenizer(), LengthLimits(8))
    assert exercise.targets.value.tolist() == [-1.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("labels", "kind", "sentence"),
    [
        ((1, 1, 1), ClassificationTask, "all 3 rows have the label '1'"),
        ((2.5, 2.5), RegressionTask, "all 2 rows have the score 2.5"),
        ((2.5, float("nan")), RegressionTask, "a.jsonl:2: the score 'nan' is not a finite number"),
        ((2.5, float("inf")), RegressionTask, "a.jsonl:2: the score 'inf' is not a finite number"),
        ((2.5, "high"), RegressionTask, "a.jsonl:2: the score 'high' is no number"),
    ],
)
def test_labels_that_teach_nothing_are_refused(write, labels, kind, sentence):
    with pytest.raises(InputError) as error:
        kind.from_examples(labels_of(write, *labels))
    assert sentence in str(error.value)


def test_one_word_among_scores_is_a_mistake_and_no_class(write):
    sheet = labels_of(write, 1.5, 2.5, 3.25, "abc")
    assert labels_are_numbers(sheet)
    with pytest.raises(InputError, match=r"a\.jsonl:4: the score 'abc' is no number"):
        RegressionTask.from_examples(sheet)


def test_not_a_number_among_whole_scores_is_no_class(write):
    sheet = labels_of(write, 1, 2, float("nan"))
    with pytest.raises(InputError, match="not a finite number"):
        (RegressionTask if labels_are_numbers(sheet) else ClassificationTask).from_examples(sheet)


def test_a_label_that_training_never_saw_is_refused_with_its_line(tmp_path):
    train = write_lines(tmp_path / "train.jsonl", reviews(4))
    dev = write_lines(tmp_path / "dev.jsonl", [{"text": "a", "label": 0}, {"text": "b", "label": 2}])
    with pytest.raises(InputError, match=r"dev\.jsonl:2: the label '2' does not occur .* which has 0, 1\."):
        load_task_data(train, dev)
    write_lines(dev, [{"sentence": "a", "label": 0}])
    with pytest.raises(InputError, match=r"dev\.jsonl:1: there is no column 'text'; it has 'sentence', 'label'"):
        load_task_data(train, dev)


def texts_of(sheet):
    return {question.texts for question in sheet.examples}


def test_one_text_in_ten_is_set_aside_and_never_on_both_sides(tmp_path):
    rows = reviews(200)
    path = write_lines(tmp_path / "train.jsonl", [*rows, *rows[:50]])
    job = load_task_data(path, None, seed=3)
    assert len(job.train) + len(job.dev) == 250
    assert 20 <= len(job.dev) <= 40
    assert len(texts_of(job.dev)) == 20
    assert not texts_of(job.dev) & texts_of(job.train)
    assert load_task_data(path, None, seed=3) == job
    assert load_task_data(path, None, seed=4).dev != job.dev
    with pytest.raises(InputError, match="one text only"):
        split_dev(ExampleSet("a", (TextExample(("x",), "1"), TextExample(("x",), "0")), ("a:1", "a:2")), 0.1, 0)


def test_a_job_says_what_it_took_and_what_is_on_both_sides(tmp_path):
    train = write_lines(tmp_path / "train.jsonl", reviews(8))
    dev = write_lines(tmp_path / "dev.jsonl", reviews(4, first=6))
    told = "\n".join(load_task_data(train, dev).notes)
    assert "8 training rows; text from 'text', label from 'label'" in told
    assert "2 classes: 0 (50%), 1 (50%)" in told
    assert "dev.jsonl: 4 dev rows" in told
    assert "note: 2 dev rows have a text that is also in the training data" in told


def test_a_file_of_another_kind_is_told_all_kinds_that_can_be_read(write):
    with pytest.raises(InputError) as error:
        load_task_data(write("a.xlsx", "x"), None)
    known = ".jsonl, .csv, .tsv, .json, .conll, .bio, .iob, .bmes, .bioes or .txt, each also with .gz or .zst"
    assert f"a.xlsx is not of a kind that is read here: {known}." in str(error.value)
    with pytest.raises(
        InputError, match=r"use --task-type tagging .* other tasks .* \.jsonl, \.csv, \.tsv or \.json\."
    ):
        load_task_data(write("a.txt", "a O\n"), None)
