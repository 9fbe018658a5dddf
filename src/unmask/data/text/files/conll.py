"""Words in columns, one a line, with a blank line between sentences: the form of the CoNLL tasks.

What arrives: the lines of a file. What leaves: sentences, each a row of cells for every word.
What never happens here: a guess at what a column means, or a line that is passed over because it is broken.

Cells stand between tabs if the first word has one, else between spaces; only these two, so that a word may be another
kind of space. Lines with -DOCSTART- end a sentence. Comments begin with # where a sentence could begin, and have not
the number of columns that words have, or a space after the # where cells stand between tabs: a # may be a word, too.
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
    """The endings of files that hold words in columns."""

    CONLL = ".conll"
    BIO = ".bio"
    IOB = ".iob"
    BMES = ".bmes"
    BIOES = ".bioes"
    TABS = ".tsv"
    TEXT = ".txt"


@dataclass(frozen=True, slots=True)
class ConllSentence:
    """The cells of each word, and where the first word stood: `file:line`. Every word has a line of its own."""

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
    """The cells of each line with its number; none where a sentence ends."""
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
                "the line, or remove it; a blank line stands between sentences."
            )
        inside = bool(cells)
        yield number, cells


def _sample(lines: Sequence[str]) -> str:
    """The first line that is surely a word."""
    words = [line for line in lines if not _is_sentence_end(line)]
    return next((line for line in words if not line.startswith(_COMMENT)), words[0] if words else "")


def _is_sentence_end(line: str) -> bool:
    return not line.strip(" \t") or line.startswith(_DOCUMENT)


def _cells(line: str, tabs: bool) -> Cells:
    return tuple(line.split("\t")) if tabs else tuple(cell for cell in line.split(" ") if cell)
