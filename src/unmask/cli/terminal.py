"""What every command shares: the console, and recipes named on the command line.

What arrives: words from the shell. What leaves: rich output in a terminal, plain lines elsewhere.
What never happens here: anything that one command alone needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

    from unmask.tasks import Recipe

T = TypeVar("T")


def console(stderr: bool = False) -> Console:
    """A console for standard output, or for messages beside it."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def resolve(name: str, changes: list[str], size: str = "") -> Recipe:
    """A member by name, perhaps in another size, with every `--set PATH=VALUE` applied at once."""
    from unmask.family import member

    return changed(member(name, size), changes, "stages.0.length=256")


def changed(value: T, changes: list[str], example: str) -> T:
    """A recipe, or a part of one, with every `--set PATH=VALUE` applied at once."""
    from unmask.codec import override_all
    from unmask.errors import RecipeError

    for change in changes:
        if "=" not in change:
            raise RecipeError(f"--set needs PATH=VALUE, such as {example}; found '{change}'.")
    return override_all(value, [(path, text) for path, _, text in (change.partition("=") for change in changes)])
