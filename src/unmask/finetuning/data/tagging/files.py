"""Files for token classification: CoNLL columns, JSON lines with words and tags, JSON lines with text and entities.

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
from unmask.finetuning.data.dataset import ExampleSet, TaskReader, Texts
from unmask.finetuning.data.table_file import TaskFile
from unmask.finetuning.data.tagging.entity_spans import split_words
from unmask.finetuning.data.tagging.json_rows import choose_tag_columns, parse_tagged_row
from unmask.finetuning.data.tagging.sentences import TaggedSentence

_CONLL_FORMS = tuple(form for form in ConllVariant if form not in (ConllVariant.TABS, ConllVariant.TEXT))


def read_tagging(
    path: Path, choice: ColumnChoice = NO_COLUMN_CHOICE, truths: bool = True
) -> tuple[ExampleSet[TaggedSentence], ColumnChoice]:
    """The sentences of a file and the columns read. Without `truths` a `.txt` file holds a sentence per line."""
    source, form = find_file(path, (*ConllVariant, TableFormat.JSON_LINES))
    if form is TableFormat.JSON_LINES:
        return _read_json(path, choice, truths)
    lines = byte_lines(source)
    if form is ConllVariant.TEXT and not truths:
        return _from_lines(decode_lines(lines, source.name), source.name), choice
    return _from_columns(tuple(read_conll(lines, source.name)), source.name, choice, truths)


def has_conll_suffix(path: Path) -> bool:
    """Whether the suffix of a file is one of CoNLL columns only."""
    return strip_compression_suffix(path.name)[0].endswith(_CONLL_FORMS)


def _json_sentences(table: TaskFile, columns: ColumnChoice, truths: bool) -> ExampleSet[TaggedSentence]:
    found = [parse_tagged_row(row, columns, truths) for row in table.rows]
    widened = sum(one.widened for one in found)
    notes = (f"note: {widened:,} entities that begin or end inside a word were widened to whole words",)
    sentences = tuple(one.sentence for one in found)
    return ExampleSet(table.name, sentences, table.source_lines, notes if widened else ())


_read_json = TaskReader(choose_tag_columns, _json_sentences)


def _from_lines(lines: Iterator[str], name: str) -> ExampleSet[TaggedSentence]:
    """Running text with one sentence per line; blank lines are skipped."""
    found = [(f"{name}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise InputError(f"{name} holds no text. It needs a sentence on each line.")
    split = [split_words(line, where) for where, line in found]
    sentences = tuple(TaggedSentence(one.words, (), one.begin) for one in split)
    return ExampleSet(name, sentences, tuple(where for where, _ in found))


def _from_columns(
    sentences: tuple[ConllSentence, ...], name: str, choice: ColumnChoice, truths: bool
) -> tuple[ExampleSet[TaggedSentence], ColumnChoice]:
    if not sentences:
        raise InputError(
            f"{name} holds no sentences. It needs a line for each word and, for training, its tag in the last column."
        )
    chosen = _columns(sentences[0], choice, truths)
    examples = tuple(TaggedSentence(_column(one, chosen.texts[0]), _column(one, chosen.label)) for one in sentences)
    return ExampleSet(name, examples, tuple(one.where for one in sentences)), chosen


def _columns(sentence: ConllSentence, choice: ColumnChoice, truths: bool) -> ColumnChoice:
    """The columns of words and tags: as numbered by the user, else the first and the last."""
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
    """One column of a sentence; empty for no column."""
    if not number:
        return ()
    cells = tuple(cells[int(number) - 1] for cells in sentence.words)
    if not all(cells):
        file, _, first = sentence.where.rpartition(":")
        line = int(first) + cells.index("")
        raise InputError(f"{file}:{line}: column {number} is empty: a word or its tag is missing. Correct the line.")
    return cells
