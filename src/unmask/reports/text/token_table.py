"""Tokens side by side in a terminal: several lines whose cells stand under each other, broken where the screen ends.

What arrives: columns, each with one cell for each line. What leaves: rich text in which every column is aligned.
What never happens here: counting characters. Chinese is two columns wide, so widths are asked of the terminal library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text


@dataclass(frozen=True, slots=True)
class TableCell:
    """One cell: what is written and in which style."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class TokenColumn:
    """One token: a cell for each line of the strip. A bar stands before it where a word begins."""

    cells: tuple[TableCell, ...]
    has_bar: bool = False

    @property
    def width(self) -> int:
        """The terminal columns it needs, its border counted."""
        return max(cell_len(cell.text) for cell in self.cells) + 1


def token_table(labels: Sequence[str], columns: Iterable[TokenColumn], width: int, margin: int) -> list[Text]:
    """The lines of a strip, in as many blocks as the width asks for; labels stand in the margin."""
    lines: list[Text] = []
    for block in _blocks(list(columns), width - margin):
        if lines:
            lines.append(Text())
        for number, label in enumerate(labels):
            lines.append(_line(label, number, block, margin))
    return lines


def _blocks(columns: Sequence[TokenColumn], room: int) -> list[list[TokenColumn]]:
    """As few blocks as the room allows, and then as equal as they can be: no token is left over on its own."""
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
