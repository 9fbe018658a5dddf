"""Terminal output shared by commands: rich in a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_NAME = 10
"""The width of the names before facts."""


def console(stderr: bool = False) -> Console:
    """A console for standard output or standard error."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def print_line(sentence: str, stderr: bool = False) -> None:
    """Print a sentence without markup; on standard error if results may be piped."""
    console(stderr=stderr).print(sentence, markup=False, soft_wrap=True)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Names with their values below each other."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", min_width=_NAME)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, value)
    console().print(table)


def print_path(what: str, where: Path) -> None:
    """A fact with a path. The path is not broken, so that it can be copied."""
    from rich.text import Text

    console().print(Text.assemble((f"{what:{_NAME}}  ", "bold"), str(where)), soft_wrap=True)


def is_main_process() -> bool:
    """Whether this is the first process of a run under torchrun, or the only one."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def explain_interrupt(out: Path) -> Iterator[None]:
    """Explain on Ctrl-C how to resume the work in a folder."""
    try:
        yield
    except KeyboardInterrupt:
        if not is_main_process():
            raise
        print_line(
            f"\nunmask: stopped. What was finished is kept in {out}; the same command goes on from there.", stderr=True
        )
        raise
