"""CoNLL files: one word a line in columns, with a blank line between sentences.

Cells are separated by tabs if the first word has one, else by spaces; a word may be another kind of space. Lines with
-DOCSTART- end a sentence. A comment begins with # where a sentence could begin, and either has another number of
columns than words have, or a space after the # in a tab-separated file, because # may be a word. A line with a wrong
number of columns is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TypeAlias

from unmask.core.errors import InputError
from unmask.data.text.files.delimited import decode_lines

Cells: TypeAlias = tuple[str, ...]
_DOCUMENT, _COMMENT = "-DOCSTART-", "#"


class ConllVariant(StrEnum):
    """The file name endings of CoNLL files."""

    CONLL = ".conll"
    BIO = ".bio"
    IOB = ".iob"
    BMES = ".bmes"
    BIOES = ".bioes"
    TABS = ".tsv"
    TEXT = ".txt"


@dataclass(frozen=True, slots=True)
class ConllSentence:
    """The cells of each word, and the place of the first word: `file:line`."""

    where: str
    words: tuple[Cells, ...]


def read_conll(lines: Iterator[bytes], name: str) -> Iterator[ConllSentence]:
    """All sentences. Every word must have as many columns as the first."""
    text = list(decode_lines(lines, name))
    held: list[Cells] = []
    first = 0
    for number, cells in chain(_words(text, name), [(0, ())]):
        if cells:
            first = first if held else number
            held.append(cells)
        elif held:
            yield ConllSentence(f"{name}:{first}", tuple(held))
            held = []


def _words(lines: Sequence[str], name: str) -> Iterator[tuple[int, Cells]]:
    """The cells of each line with its number; none at the end of a sentence."""
    sample = _sample(lines)
    tabs = "\t" in sample
    width = len(_cells(sample, tabs))
    inside = False
    for number, line in enumerate(lines, start=1):
        cells = () if _is_sentence_end(line) else _cells(line, tabs)
        if not inside and line.startswith(_COMMENT) and (len(cells) != width or (tabs and line[1:2] == " ")):
            continue
        if cells and len(cells) != width:
            raise InputError(
                f"{name}:{number}: the number of columns is {len(cells)} here and {width} at the first word. Correct "
                "the line, or remove it; a blank line separates sentences."
            )
        inside = bool(cells)
        yield number, cells


def _sample(lines: Sequence[str]) -> str:
    """The first line that is certainly a word."""
    words = [line for line in lines if not _is_sentence_end(line)]
    return next((line for line in words if not line.startswith(_COMMENT)), words[0] if words else "")


def _is_sentence_end(line: str) -> bool:
    return not line.strip(" \t") or line.startswith(_DOCUMENT)


def _cells(line: str, tabs: bool) -> Cells:
    return tuple(line.split("\t")) if tabs else tuple(cell for cell in line.split(" ") if cell)
