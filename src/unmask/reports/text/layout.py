"""Layout of a walk in the terminal: labelled paragraphs, and tables of tokens that break at the width.

Widths are those of the terminal: a Chinese character has two columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

MARGIN = 9
"""The width of a label with the space after it."""


class TextPiece(NamedTuple):
    """A piece of running text: the space before it, the piece, and its style."""

    gap: str
    text: str
    style: str


def format_label(label: str) -> Text:
    """A right-aligned label in the margin."""
    return Text().append(label.rjust(MARGIN - 1) + " ", "dim")


def wrap_text(label: str, text: str | Text, width: int, style: str = "") -> Iterator[Text]:
    """A paragraph with a label in the margin."""
    body = Text(text, style=style) if isinstance(text, str) else text
    for number, line in enumerate(break_at_spaces(body, width - MARGIN)):
        yield format_label(label if number == 0 else "").append_text(line)


def wrap_pieces(label: str, text_pieces: Iterable[TextPiece], width: int) -> Iterator[Text]:
    """Running text of pieces; lines break between words, not between the pieces of a word."""
    line, used = format_label(label), MARGIN
    for chunk in _chunks(text_pieces):
        size = sum(cell_len(piece.text) for piece in chunk)
        if used + len(chunk[0].gap) + size > width and used > MARGIN:
            yield line
            line, used = format_label(""), MARGIN
            chunk[0] = chunk[0]._replace(gap="")
        for piece in chunk:
            line.append(piece.gap).append(piece.text, piece.style)
        used += len(chunk[0].gap) + size
    yield line


def _chunks(pieces: Iterable[TextPiece]) -> Iterator[list[TextPiece]]:
    """The pieces of one word with its closing punctuation."""
    chunk: list[TextPiece] = []
    for piece in pieces:
        if chunk and (piece.gap or piece.text[0] in "[<" or cell_len(piece.text[0]) > 1):
            yield chunk
            chunk = []
        chunk.append(piece)
    if chunk:
        yield chunk


def break_at_spaces(text: Text, width: int) -> list[Text]:
    """Lines of a text, broken at spaces."""
    lines = text.wrap(Console(width=width), width)
    for line in lines:
        line.rstrip()
    return list(lines)


@dataclass(frozen=True, slots=True)
class TableCell:
    """One cell: its text and its style."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class TokenColumn:
    """One token: a cell per line, and whether a word begins with it."""

    cells: tuple[TableCell, ...]
    has_bar: bool = False

    @property
    def width(self) -> int:
        """Its width in the terminal, with its border."""
        return max(cell_len(cell.text) for cell in self.cells) + 1


def token_table(labels: Sequence[str], columns: Iterable[TokenColumn], width: int, margin: int) -> list[Text]:
    """The lines of a table of tokens with labels in the margin, in as many blocks as the width requires."""
    lines: list[Text] = []
    for block in _blocks(list(columns), width - margin):
        if lines:
            lines.append(Text())
        for number, label in enumerate(labels):
            lines.append(_line(label, number, block, margin))
    return lines


def _blocks(columns: Sequence[TokenColumn], room: int) -> list[list[TokenColumn]]:
    """As few blocks as possible, of nearly equal size."""
    fewest = len(_fill_blocks(columns, room))
    while room > 1 and len(narrower := _fill_blocks(columns, room - 1)) == fewest and len(narrower) > 1:
        room -= 1
    return _fill_blocks(columns, room)


def _fill_blocks(columns: Sequence[TokenColumn], room: int) -> list[list[TokenColumn]]:
    blocks: list[list[TokenColumn]] = [[]]
    used = 0
    for column in columns:
        if used + column.width > room and blocks[-1]:
            blocks.append([])
            used = 0
        blocks[-1].append(column)
        used += column.width
    return blocks


def _line(label: str, number: int, block: Sequence[TokenColumn], margin: int) -> Text:
    line = Text().append(label.rjust(margin - 1), "dim")
    for place, column in enumerate(block):
        cell = column.cells[number]
        # A plain bar: box-drawing characters are two columns wide in some Chinese terminals.
        line.append("|" if column.has_bar and place and number == 0 else " ", "dim")
        line.append(cell.text, cell.style)
        line.append(" " * (column.width - 1 - cell_len(cell.text)))
    line.rstrip()
    return line
