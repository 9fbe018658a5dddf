"""What every command shares: ways to speak, and recipes named on the command line.

What arrives: words from the shell. What leaves: rich output in a terminal, plain lines elsewhere.
What never happens here: anything that one command alone needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

    from unmask.tasks.recipe import Recipe

T = TypeVar("T")
_NAME = 10
"""The width of the names before facts."""


def console(stderr: bool = False) -> Console:
    """A console for standard output, or for messages beside it."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def print_line(sentence: str, stderr: bool = False) -> None:
    """Print a sentence as it stands; `beside` the output, on standard error, where results may be piped."""
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
    """One more fact: where the thing itself lies. The path is not broken, so that it can be copied."""
    from rich.text import Text

    console().print(Text.assemble((f"{what:{_NAME}}  ", "bold"), str(where)), soft_wrap=True)


@contextmanager
def explain_interrupt(out: Path) -> Iterator[None]:
    """Say what Ctrl-C means for the work in a folder."""
    try:
        yield
    except KeyboardInterrupt:
        print_line(
            f"\nunmask: stopped. What was finished is kept in {out}; the same command goes on from there.", stderr=True
        )
        raise


def resolve_member(name: str, changes: list[str], size: str = "") -> Recipe:
    """A member by name, perhaps in another size, with every `--set PATH=VALUE` applied at once."""
    from unmask.members import member

    return apply_changes(member(name, size), changes, "stages.0.length=256")


def apply_changes(value: T, changes: list[str], example: str) -> T:
    """A recipe, or a part of one, with every `--set PATH=VALUE` applied at once."""
    from unmask.core.codec import override_many
    from unmask.core.errors import RecipeError

    for change in changes:
        if "=" not in change:
            raise RecipeError(f"--set needs PATH=VALUE, such as {example}; found '{change}'.")
    return override_many(value, [(path, text) for path, _, text in (change.partition("=") for change in changes)])
