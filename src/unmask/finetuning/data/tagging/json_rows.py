"""Tagged sentences as JSON objects: a list of words and a list of tags, or a running text with its entities.

What arrives: the rows of a `.jsonl` file. What leaves: which fields hold words and tags, and the question of each row.
What never happens here: a row whose words and tags do not match. It is refused with its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from unmask.core.errors import InputError
from unmask.data.text.files.lines import RawRow
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.dataset import Texts, json_type_name, label_of
from unmask.finetuning.data.tagging.entity_spans import split_for_tags, split_words, tags_from_entities
from unmask.finetuning.data.tagging.sentences import TaggedSentence

WORDS = ("tokens", "words", "characters", "chars")
TEXTS = ("text", "sentence", "content")
TAGS = ("tags", "labels", "ner_tags", "ner", "label", "chunk_tags", "pos_tags", "pos", "upos")
ENTITIES = ("entities", "spans")
"""Usual names of fields, the most telling first."""


class ParsedRow(NamedTuple):
    """The question of a row, and how many of its entities were widened to whole words."""

    sentence: TaggedSentence
    widened: int = 0


def choose_tag_columns(row: RawRow, choice: ColumnChoice, truths: bool) -> ColumnChoice:
    """Which fields hold words and tags: what was chosen, and for the rest the usual names, by the first row.

    Without truths a new file may call its words, or its running text, otherwise than the training file did.
    """
    if len(choice.texts) > 1:
        raise InputError(f"--text-columns names one field, which holds the words; found {', '.join(choice.texts)}.")
    for name in filter(None, (*choice.texts, choice.label)) if truths else ():
        if name not in row.fields:
            raise InputError(f"{row.where}: there is no field {name!r}; {_there(row)}.")
    words = next((name for name in choice.texts if name in row.fields), "") or _usual(row, (*WORDS, *TEXTS), "words")
    if not truths:
        return ColumnChoice((words,), choice.label)
    return ColumnChoice((words,), choice.label or _usual(row, (*TAGS, *ENTITIES), "tags"))


def is_tagged(row: RawRow) -> bool:
    """Whether a row has a list of words and a list of tags, or a text with entities.

    A text with a list of tags may as well be one that has several labels, so it does not count.
    """
    lists = {name.lower() for name, cell in row.fields.items() if isinstance(cell, list)}
    texts = {name.lower() for name, cell in row.fields.items() if isinstance(cell, str)}
    return bool(lists & {*WORDS} and lists & {*TAGS}) or bool(texts & {*TEXTS} and lists & {*ENTITIES})


def parse_tagged_row(row: RawRow, choice: ColumnChoice, truths: bool) -> ParsedRow:
    """The words of a row and, if wanted, their tags."""
    (name,) = choice.texts
    cell = row.fields.get(name)
    found = _of_text(row, cell, choice.label, truths) if isinstance(cell, str) else _of_words(row, name, choice, truths)
    if not found.sentence.words:
        raise InputError(f"{row.where}: there is no word in {name!r}. Correct the line, or remove it.")
    return found


def _of_words(row: RawRow, name: str, choice: ColumnChoice, truths: bool) -> ParsedRow:
    words = _list(row, name)
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
    """A running text, with entities as characters of it or with a tag for each piece."""
    told = _list(row, label) if truths else []
    if told and not isinstance(told[0], Mapping):
        tags = _tags(row, label)
        words, begin = split_for_tags(text, len(tags), row.where)
        return ParsedRow(TaggedSentence(words, tags, begin))
    cut = split_words(text, row.where)
    if not truths:
        return ParsedRow(TaggedSentence(cut.words, (), cut.begin))
    tags, widened = tags_from_entities(text, cut, told, row.where)
    return ParsedRow(TaggedSentence(cut.words, tags, cut.begin), widened)


def _tags(row: RawRow, name: str) -> Texts:
    tags = tuple(map(label_of, _list(row, name)))
    if not all(tags):
        raise InputError(f"{row.where}: tag {tags.index('') + 1} of {name!r} is missing. Correct the line.")
    return tags


def _list(row: RawRow, name: str) -> Sequence[object]:
    cell = row.fields.get(name)
    if isinstance(cell, list):
        return cell
    if name in row.fields:
        raise InputError(
            f"{row.where}: {name!r} should hold a list and holds {json_type_name(cell)}. Correct the line."
        )
    raise InputError(f"{row.where}: there is no field {name!r}. Add it, or remove the line.")


def _usual(row: RawRow, names: Iterable[str], what: str) -> str:
    have = {name.lower(): name for name in row.fields}
    found = next((have[name] for name in names if name in have), "")
    if not found:
        raise InputError(
            f"{row.where}: no field has a usual name for {what}; {_there(row)}. Name them: --text-columns WORDS --label-column TAGS."
        )
    return found


def _there(row: RawRow) -> str:
    return f"it has {', '.join(map(repr, list(row.fields)[:12]))}"
