"""Paragraphs beside a label, broken where the screen ends.

What arrives: a label and text, or pieces of text with styles. What leaves: lines that fit.
What never happens here: a special token or a spelled word broken in two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

MARGIN = 9
"""The columns that a label takes, the space behind it counted."""


class TextPiece(NamedTuple):
    """A piece of running text: the space before it, the piece, and its style."""

    gap: str
    text: str
    style: str


def format_label(label: str) -> Text:
    """The beginning of a line: a label at the right of its margin."""
    return Text().append(label.rjust(MARGIN - 1) + " ", "dim")


def wrap_text(label: str, text: str | Text, width: int, style: str = "") -> Iterator[Text]:
    """A paragraph beside its label, broken at the width."""
    body = Text(text, style=style) if isinstance(text, str) else text
    for number, line in enumerate(break_at_spaces(body, width - MARGIN)):
        yield format_label(label if number == 0 else "").append_text(line)


def wrap_pieces(label: str, text_pieces: Iterable[TextPiece], width: int) -> Iterator[Text]:
    """Running text of atoms that is broken between them, and never inside a spelled word."""
    line, used = format_label(label), MARGIN
    for chunk in _chunks(text_pieces):
        size = sum(cell_len(atom.text) for atom in chunk)
        if used + len(chunk[0].gap) + size > width and used > MARGIN:
            yield line
            line, used = format_label(""), MARGIN
            chunk[0] = chunk[0]._replace(gap="")
        for atom in chunk:
            line.append(atom.gap).append(atom.text, atom.style)
        used += len(chunk[0].gap) + size
    yield line


def _chunks(atoms: Iterable[TextPiece]) -> Iterator[list[TextPiece]]:
    """Atoms that must stay on one line: pieces of a word, and what closes it."""
    chunk: list[TextPiece] = []
    for atom in atoms:
        if chunk and (atom.gap or atom.text[0] in "[<" or cell_len(atom.text[0]) > 1):
            yield chunk
            chunk = []
        chunk.append(atom)
    if chunk:
        yield chunk


def break_at_spaces(text: Text, width: int) -> list[Text]:
    """Text broken at spaces."""
    lines = text.wrap(Console(width=width), width)
    for line in lines:
        line.rstrip()
    return list(lines)
