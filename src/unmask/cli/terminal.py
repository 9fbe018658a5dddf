"""What every command shares: the console, and recipes named on the command line.

What arrives: words from the shell. What leaves: rich output in a terminal, plain lines elsewhere.
What never happens here: anything that one command alone needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from unmask.tasks import Recipe


def console(stderr: bool = False) -> Console:
    """A console for standard output, or for messages beside it."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def resolve(name: str, changes: list[str]) -> Recipe:
    """A member by name, with `--set PATH=VALUE` applied in order."""
    from unmask.codec import override
    from unmask.errors import RecipeError
    from unmask.family import member

    recipe = member(name)
    for change in changes:
        path, sign, text = change.partition("=")
        if not sign:
            raise RecipeError(f"--set needs PATH=VALUE, such as stages.0.length=256; found '{change}'.")
        recipe = override(recipe, path, text)
    return recipe
