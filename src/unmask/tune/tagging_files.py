"""Tagged sentences from files: words in columns, JSON lines with a list of words, JSON lines with running text.

What arrives: the path of a file. What leaves: a `Sheet` of `TagQuestion`s, and the columns or fields that were read.
What never happens here: the meaning of a tag.

    EU       B-ORG              {"tokens": ["EU", "rejects"], "tags": ["B-ORG", "O"]}
    rejects  O                  {"text": "EU rejects", "entities": [{"start": 0, "end": 2, "label": "ORG"}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unmask.errors import InputError
from unmask.text.sources import unpacked_name
from unmask.text.table import Form, decoded, find_file, raw_lines
from unmask.text.word_columns import Columns, Sentence, read_columns
from unmask.tune.fields import NO_CHOICE, Choice
from unmask.tune.sheet import Sheet, Texts
from unmask.tune.tagging import TagQuestion
from unmask.tune.tagging_objects import choose_fields, question_of
from unmask.tune.tagging_text import cut_text
from unmask.tune.task_file import read_task_file

_SURE = tuple(form for form in Columns if form not in (Columns.TABS, Columns.TEXT))


def read(path: Path, choice: Choice = NO_CHOICE, truths: bool = True) -> tuple[Sheet[TagQuestion], Choice]:
    """The sentences of a file, from the columns or fields that were chosen or are usual; and which these are.

    Without truths, a `.txt` file holds running text, a sentence a line.
    """
    source, form = find_file(path, (*Columns, Form.JSON_LINES))
    if form is Form.JSON_LINES:
        return _from_objects(path, choice, truths)
    lines = raw_lines(source)
    if form is Columns.TEXT and not truths:
        return _from_lines(decoded(lines, source.name), source.name), choice
    return _from_columns(tuple(read_columns(lines, source.name)), source.name, choice, truths)


def holds_columns(path: Path) -> bool:
    """Whether a file has an ending that nothing but tagged words has."""
    return unpacked_name(path.name)[0].endswith(_SURE)


def _from_objects(path: Path, choice: Choice, truths: bool) -> tuple[Sheet[TagQuestion], Choice]:
    table = read_task_file(path)
    made = choose_fields(table.rows[0], choice, truths)
    found = [question_of(row, made, truths) for row in table.rows]
    widened = sum(one.widened for one in found)
    notes = (f"note: entities that begin or end inside a word, and were widened to all of it: {widened:,}",)
    return Sheet(table.name, tuple(one.question for one in found), table.where, notes if widened else ()), made


def _from_lines(lines: Iterator[str], name: str) -> Sheet[TagQuestion]:
    """Running text, a sentence a line; blank lines are passed over."""
    found = [(f"{name}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise InputError(f"{name} holds no text. It needs a sentence on each line.")
    cut = [cut_text(line, where) for where, line in found]
    questions = tuple(TagQuestion(one.words, (), one.begin) for one in cut)
    return Sheet(name, questions, tuple(where for where, _ in found))


def _from_columns(
    sentences: tuple[Sentence, ...], name: str, choice: Choice, truths: bool
) -> tuple[Sheet[TagQuestion], Choice]:
    if not sentences:
        raise InputError(
            f"{name} holds no sentences. It needs a line for each word and, to learn from it, its tag in the last "
            "column."
        )
    made = _columns(sentences[0], choice, truths)
    questions = tuple(TagQuestion(_column(one, made.texts[0]), _column(one, made.label)) for one in sentences)
    return Sheet(name, questions, tuple(one.where for one in sentences)), made


def _columns(sentence: Sentence, choice: Choice, truths: bool) -> Choice:
    """The columns of words and tags: the first and the last, unless others were chosen."""
    width = len(sentence.words[0])
    names = [str(number) for number in range(1, width + 1)]
    if not truths:
        return Choice((next((name for name in choice.texts if name in names), "1"),))
    for name in filter(None, (*choice.texts, choice.label)):
        if name not in names:
            raise InputError(
                f"{sentence.where}: there is no column {name!r}; columns have numbers from 1 to {width} here. Give "
                "words and tags as in --fields 1 --label 2."
            )
    if width == 1:
        raise InputError(f"{sentence.where}: the first word has one column; a second is needed, for its tag.")
    return Choice(choice.texts or ("1",), choice.label or str(width))


def _column(sentence: Sentence, number: str) -> Texts:
    """One column of a sentence; nothing if no column is meant."""
    if not number:
        return ()
    cells = tuple(cells[int(number) - 1] for cells in sentence.words)
    if not all(cells):
        file, _, first = sentence.where.rpartition(":")
        line = int(first) + cells.index("")
        raise InputError(f"{file}:{line}: column {number} is empty: a word or its tag is missing. Correct the line.")
    return cells
