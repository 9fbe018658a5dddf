"""Tagged sentences from files: words in columns, JSON lines with a list of words, JSON lines with running text.

What arrives: the path of a file. What leaves: a `Sheet` of `TagQuestion`s, and the columns or fields that were read.
What never happens here: the meaning of a tag.

    EU       B-ORG              {"tokens": ["EU", "rejects"], "tags": ["B-ORG", "O"]}
    rejects  O                  {"text": "EU rejects", "entities": [{"start": 0, "end": 2, "label": "ORG"}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.conll import ConllSentence, ConllVariant, read_conll
from unmask.data.text.files.delimited import TableFormat, byte_lines, decode_lines, find_file
from unmask.data.text.files.paths import strip_compression_suffix
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice
from unmask.finetuning.data.dataset import ExampleSet, Texts
from unmask.finetuning.data.table_file import read_task_file
from unmask.finetuning.data.tagging.entity_spans import split_words
from unmask.finetuning.data.tagging.json_rows import choose_tag_columns, parse_tagged_row
from unmask.finetuning.data.tagging.sentences import TaggedSentence

_CONLL_FORMS = tuple(form for form in ConllVariant if form not in (ConllVariant.TABS, ConllVariant.TEXT))


def read_tagging(
    path: Path, choice: ColumnChoice = NO_COLUMN_CHOICE, truths: bool = True
) -> tuple[ExampleSet[TaggedSentence], ColumnChoice]:
    """The sentences of a file, from the columns or fields that were chosen or are usual; and which these are.

    Without truths, a `.txt` file holds running text, a sentence a line.
    """
    source, form = find_file(path, (*ConllVariant, TableFormat.JSON_LINES))
    if form is TableFormat.JSON_LINES:
        return _from_objects(path, choice, truths)
    lines = byte_lines(source)
    if form is ConllVariant.TEXT and not truths:
        return _from_lines(decode_lines(lines, source.name), source.name), choice
    return _from_columns(tuple(read_conll(lines, source.name)), source.name, choice, truths)


def has_conll_suffix(path: Path) -> bool:
    """Whether a file has an ending that nothing but tagged words has."""
    return strip_compression_suffix(path.name)[0].endswith(_CONLL_FORMS)


def _from_objects(path: Path, choice: ColumnChoice, truths: bool) -> tuple[ExampleSet[TaggedSentence], ColumnChoice]:
    table = read_task_file(path)
    made = choose_tag_columns(table.rows[0], choice, truths)
    found = [parse_tagged_row(row, made, truths) for row in table.rows]
    widened = sum(one.widened for one in found)
    notes = (f"note: entities that begin or end inside a word, and were widened to all of it: {widened:,}",)
    return ExampleSet(
        table.name, tuple(one.sentence for one in found), table.source_lines, notes if widened else ()
    ), made


def _from_lines(lines: Iterator[str], name: str) -> ExampleSet[TaggedSentence]:
    """Running text, a sentence a line; blank lines are passed over."""
    found = [(f"{name}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise InputError(f"{name} holds no text. It needs a sentence on each line.")
    cut = [split_words(line, where) for where, line in found]
    questions = tuple(TaggedSentence(one.words, (), one.begin) for one in cut)
    return ExampleSet(name, questions, tuple(where for where, _ in found))


def _from_columns(
    sentences: tuple[ConllSentence, ...], name: str, choice: ColumnChoice, truths: bool
) -> tuple[ExampleSet[TaggedSentence], ColumnChoice]:
    if not sentences:
        raise InputError(
            f"{name} holds no sentences. It needs a line for each word and, to learn from it, its tag in the last "
            "column."
        )
    made = _columns(sentences[0], choice, truths)
    questions = tuple(TaggedSentence(_column(one, made.texts[0]), _column(one, made.label)) for one in sentences)
    return ExampleSet(name, questions, tuple(one.where for one in sentences)), made


def _columns(sentence: ConllSentence, choice: ColumnChoice, truths: bool) -> ColumnChoice:
    """The columns of words and tags: the first and the last, unless others were chosen."""
    width = len(sentence.words[0])
    names = [str(number) for number in range(1, width + 1)]
    if not truths:
        return ColumnChoice((next((name for name in choice.texts if name in names), "1"),))
    for name in filter(None, (*choice.texts, choice.label)):
        if name not in names:
            raise InputError(
                f"{sentence.where}: there is no column {name!r}; columns have numbers from 1 to {width} here. Give "
                "words and tags as in --text-columns 1 --label-column 2."
            )
    if width == 1:
        raise InputError(f"{sentence.where}: the first word has one column; a second is needed, for its tag.")
    return ColumnChoice(choice.texts or ("1",), choice.label or str(width))


def _column(sentence: ConllSentence, number: str) -> Texts:
    """One column of a sentence; nothing if no column is meant."""
    if not number:
        return ()
    cells = tuple(cells[int(number) - 1] for cells in sentence.words)
    if not all(cells):
        file, _, first = sentence.where.rpartition(":")
        line = int(first) + cells.index("")
        raise InputError(f"{file}:{line}: column {number} is empty: a word or its tag is missing. Correct the line.")
    return cells
