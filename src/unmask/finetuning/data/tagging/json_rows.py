"""Tagged sentences in JSON lines: a list of words and a list of tags, or a running text with entities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from unmask.core.errors import InputError
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import ColumnChoice, require_columns, usual_column
from unmask.finetuning.data.dataset import Texts
from unmask.finetuning.data.table_file import TaskFile, json_type_name, label_text, list_cell
from unmask.finetuning.data.tagging.entity_spans import split_for_tags, split_words, tags_from_entities
from unmask.finetuning.data.tagging.sentences import TaggedSentence

WORDS = ("tokens", "words", "characters", "chars")
TEXTS = ("text", "sentence", "content")
TAGS = ("tags", "labels", "ner_tags", "ner", "label", "chunk_tags", "pos_tags", "pos", "upos")
ENTITIES = ("entities", "spans")
"""Usual names of columns, the most specific first."""
_ADVICE = "Name them: --text-columns WORDS --label-column TAGS."


class ParsedRow(NamedTuple):
    """The sentence of a row, and how many of its entities were widened to whole words."""

    sentence: TaggedSentence
    widened: int = 0


def choose_tag_columns(table: TaskFile, choice: ColumnChoice, truths: bool) -> ColumnChoice:
    """The columns of words (or text) and tags: as named, or by usual names.

    Without `truths` a file may name its words otherwise than the training file.
    """
    if len(choice.texts) > 1:
        raise InputError(f"--text-columns names one column, which holds the words; found {', '.join(choice.texts)}.")
    if truths:
        require_columns(table, filter(None, (*choice.texts, choice.label)))
    named = next((name for name in choice.texts if name in table.columns), "")
    words = named or usual_column(table, (*WORDS, *TEXTS), "words", _ADVICE)
    if not truths:
        return ColumnChoice((words,), choice.label)
    return ColumnChoice((words,), choice.label or usual_column(table, (*TAGS, *ENTITIES), "tags", _ADVICE))


def is_tagged(row: RawRow) -> bool:
    """Whether a row has a list of words with tags, or a text with entities. A text with tags may be multi-label."""
    lists = {name.lower() for name, cell in row.fields.items() if isinstance(cell, list)}
    texts = {name.lower() for name, cell in row.fields.items() if isinstance(cell, str)}
    return bool(lists & {*WORDS} and lists & {*TAGS}) or bool(texts & {*TEXTS} and lists & {*ENTITIES})


def parse_tagged_row(row: RawRow, choice: ColumnChoice, truths: bool) -> ParsedRow:
    """The words of a row and, with `truths`, their tags."""
    (name,) = choice.texts
    cell = row.fields.get(name)
    found = _of_text(row, cell, choice.label, truths) if isinstance(cell, str) else _of_words(row, name, choice, truths)
    if not found.sentence.words:
        raise InputError(f"{row.where}: there is no word in {name!r}. Correct the line, or remove it.")
    return found


def _of_words(row: RawRow, name: str, choice: ColumnChoice, truths: bool) -> ParsedRow:
    words = list_cell(row, name)
    for number, word in enumerate(words, start=1):
        if not isinstance(word, str) or not word:
            found = "an empty word" if word == "" else json_type_name(word)
            raise InputError(f"{row.where}: word {number} of {name!r} should be text and is {found}. Correct the line.")
    texts = tuple(map(str, words))
    if not truths:
        return ParsedRow(TaggedSentence(texts))
    tags = _tags(row, choice.label)
    if len(tags) != len(texts):
        raise InputError(
            f"{row.where}: words in {name!r}: {len(texts):,}, tags in {choice.label!r}: {len(tags):,}. Each word needs "
            "one tag; correct the line, or remove it."
        )
    return ParsedRow(TaggedSentence(texts, tags))


def _of_text(row: RawRow, text: str, label: str, truths: bool) -> ParsedRow:
    """A running text, with entities in characters or with a tag for each character or word."""
    labels = list_cell(row, label) if truths else []
    if labels and not isinstance(labels[0], Mapping):
        tags = _tags(row, label)
        words, begin = split_for_tags(text, len(tags), row.where)
        return ParsedRow(TaggedSentence(words, tags, begin))
    cut = split_words(text, row.where)
    if not truths:
        return ParsedRow(TaggedSentence(cut.words, (), cut.begin))
    tags, widened = tags_from_entities(text, cut, labels, row.where)
    return ParsedRow(TaggedSentence(cut.words, tags, cut.begin), widened)


def _tags(row: RawRow, name: str) -> Texts:
    tags = tuple(map(label_text, list_cell(row, name)))
    if not all(tags):
        raise InputError(f"{row.where}: tag {tags.index('') + 1} of {name!r} is missing. Correct the line.")
    return tags
