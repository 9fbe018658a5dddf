"""`family`, `show`, `diff`: the members, the parts of one, and what a paper changed. Works without torch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from unmask.core.codec import Difference


def family() -> None:
    """List the members as a tree: year, paper, parameters, and what each changed.

    Parameters are those of the usual size with the vocabulary of the paper: embeddings, layers and the pooler over the
    first token (ELECTRA has none), without the heads of pre-training.

    Examples:

        unmask family
    """
    from rich.tree import Tree

    from unmask.cli.ui.console import console, print_line
    from unmask.members import count_parameters, members

    known = members()
    nodes: dict[str, Tree] = {}
    root = Tree("the family", hide_root=True)
    waiting = list(known)
    while waiting:
        recipe = waiting.pop(0)
        if recipe.parent and recipe.parent not in nodes:
            waiting.append(recipe)
            continue
        label = (
            f"[bold]{recipe.name}[/bold] {recipe.year}  [dim]{recipe.paper}[/dim]  {count_parameters(recipe):,} "
            f"parameters\n{recipe.summary}"
        )
        nodes[recipe.name] = (nodes[recipe.parent] if recipe.parent else root).add(label)
    screen = console()
    screen.width = max(screen.width, _TREE_WIDTH)  # the address of a paper is not broken, so that it can be copied
    screen.print(root)
    print_line(
        "\nparameters: embeddings, layers and pooler (ELECTRA has none) in base size, without the heads of pre-training"
    )


def show(
    member: Annotated[str, typer.Argument(help="A member, or your_file.py:name.")],
    size: Annotated[str, typer.Option(help="tiny, mini, small, medium, base or large; usual: base.")] = "",
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a value first: PATH=VALUE.")] = None,
) -> None:
    """Print a member's recipe in full: every part and every number.

    Examples:

        unmask show bert

        unmask show electra --size small

        unmask show macbert --set stages.0.max_length=256

        unmask show roberta --set "masking=StaticMasking(1)"
    """
    from unmask.cli.ui.console import console
    from unmask.core.codec import to_tree
    from unmask.members import resolve_member

    for line in to_tree(resolve_member(member, set_ or [], size)):
        console().print(line, markup=False, highlight=False)


def diff(
    member: Annotated[str, typer.Argument(help="The member to explain.")],
    other: Annotated[str, typer.Argument(help="The member it is compared with, usually its parent.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a value of the first member: PATH=VALUE.")
    ] = None,
) -> None:
    """Print what one member changed against another, part by part. A heading and a row make a path for --set.

    A * in a heading is every stage. Of a part that was exchanged for another, what both have in common is left out, and
    so is what is usual for it; `unmask show` prints everything.

    Examples:

        unmask diff roberta bert

        unmask diff bert bert --set stages.0.tasks.0.corruption.select.rate=0.4
    """
    from unmask.cli.ui.console import console, print_line
    from unmask.core.codec import difference
    from unmask.members import resolve_member

    changes = set_ or []
    left, right = resolve_member(other, []), resolve_member(member, changes)
    stages = len(left.stages) if len(left.stages) == len(right.stages) else 0
    rows = [row for row in _merge_stages(difference(left, right), stages) if _split_path(row.path)[1] not in _LABELS]
    if not rows:
        print_line(f"{member} and {other} are the same.")
        return
    console().print(_table(rows, other, f"{member} (changed)" if changes else member))


def _merge_stages(rows: Sequence[Difference], stages: int) -> list[Difference]:
    """Changes that are the same in every stage, printed once: `*` stands for all of them, as in --set."""
    anywhere = [row._replace(path=_STAGE.sub("stages.*", row.path)) for row in rows]
    often = Counter(anywhere)
    joined = list(
        dict.fromkeys(every if often[every] == stages > 1 else row for every, row in zip(anywhere, rows, strict=True))
    )
    order = list(dict.fromkeys(_split_path(row.path)[0] or row.path for row in joined))
    return sorted(joined, key=lambda row: order.index(_split_path(row.path)[0] or row.path))


def _table(rows: Sequence[Difference], left: str, right: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", left, right):
        table.add_column(Text(name), overflow="fold", no_wrap=not name)
    before = ""
    for path, ours, theirs in rows:
        heading, place = _split_path(path)
        if heading and heading != before:
            table.add_row(Text(heading, style="bold"))
        before = heading
        table.add_row(f"{'  ' if heading else ''}{place}", Text(ours), Text(theirs))
    return table


_TREE_WIDTH = 200
_LABELS = {"name", "year", "paper", "title", "summary", "parent", "model_type"}
"""Fields that identify a member."""


def _split_path(path: str) -> tuple[str, str]:
    """A path as a heading and a row: `stages.0.tasks.0` and `corruption.select`, or `optim` and `max_grad_norm`."""
    words = path.split(".")
    if len(words) == 1 or (words[0] == "stages" and len(words) == _OF_STAGE):
        return "", path
    head = 1
    if words[0] == "stages":
        head = _OF_TASK if words[_OF_STAGE] == "tasks" and len(words) > _OF_TASK else _OF_STAGE
    return ".".join(words[:head]), ".".join(words[head:])


_OF_STAGE, _OF_TASK = 2, 4
"""How many words name a stage (`stages.0`), and how many a task (`stages.0.tasks.0`)."""
_STAGE = re.compile(r"^stages\.\d+")
