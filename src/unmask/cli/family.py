"""`family`, `show`, `diff`: the members, what one consists of, and what a paper changed.

What arrives: names of members. What leaves: tables and trees in the terminal. What never happens here: torch.
"""

from __future__ import annotations

from typing import Annotated

import typer


def family() -> None:
    """List the members as a tree: year, paper, and what each changed.

    Examples:

        unmask family
    """
    from rich.tree import Tree

    from unmask.cli.terminal import console
    from unmask.family import members

    known = members()
    nodes: dict[str, Tree] = {}
    root = Tree("the family", hide_root=True)
    waiting = list(known)
    while waiting:
        recipe = waiting.pop(0)
        if recipe.parent and recipe.parent not in nodes:
            waiting.append(recipe)
            continue
        label = f"[bold]{recipe.name}[/bold] {recipe.year}  [dim]{recipe.paper}[/dim]\n{recipe.changed}"
        nodes[recipe.name] = (nodes[recipe.parent] if recipe.parent else root).add(label)
    console().print(root)


def show(
    member: Annotated[str, typer.Argument(help="A member, or your_file.py:name.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a value first: PATH=VALUE.")] = None,
) -> None:
    """Print a member's recipe in full: every part and every number.

    Examples:

        unmask show bert

        unmask show macbert --set stages.0.length=256
    """
    from unmask.cli.terminal import console, resolve
    from unmask.codec import describe

    for line in describe(resolve(member, set_ or [])):
        console().print(line, markup=False, highlight=False)


def diff(
    member: Annotated[str, typer.Argument(help="The member to explain.")],
    other: Annotated[str, typer.Argument(help="The member it is compared with, usually its parent.")],
) -> None:
    """Print what one member changed against another, part by part.

    Examples:

        unmask diff roberta bert
    """
    from rich.table import Table

    from unmask.cli.terminal import console
    from unmask.codec import difference
    from unmask.family import member as find

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", other, member):
        table.add_column(name, overflow="fold", ratio=None if name else 0)
    before = ""
    for path, left, right in difference(find(other), find(member)):
        heading, place = _place(path)
        if place in _LABELS:
            continue
        if heading != before:
            table.add_row(f"[bold]{heading}[/bold]")
            before = heading
        table.add_row(f"{'  ' if heading else ''}{place}", left, right)
    console().print(table)


_LABELS = {"name", "year", "paper", "title", "changed", "parent"}


def _place(path: str) -> tuple[str, str]:
    """A path as a person reads it: `stages.0.tasks.0.corrupt.select.run` is `corrupt.select.run` of stage 1."""
    words = path.split(".")
    if words[0] != "stages":
        return "", path
    heading, words = f"stage {int(words[1]) + 1}", words[2:]
    if words[:2] == ["tasks", "0"]:
        words = words[2:]
    return heading, ".".join(words) or "as a whole"
