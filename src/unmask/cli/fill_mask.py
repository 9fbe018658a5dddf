"""`fill-mask`: the most probable tokens for each [MASK] of a text, as a table or as JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmask.config.inference import CheckpointChoice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table

    from unmask.inference.fill_mask import FilledText
    from unmask.nets.top_k import TokenProbability

_BAR = 40
"""The width of a bar of probability 1."""


def fill_mask(
    source: Annotated[Path, typer.Argument(help="A run folder of pretrain, or a Hugging Face folder.")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts with [MASK]; - or nothing: standard input.", show_default=False)
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, help="Tokens to show for each mask.")] = 5,
    checkpoint: Annotated[CheckpointChoice, typer.Option(help="Which checkpoint of a run.")] = CheckpointChoice.LAST,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, a line for each text.")] = False,
) -> None:
    """Fill the masks of a text: the most probable tokens for each, with their probabilities.

    Examples:

        unmask fill-mask runs/bert "今天天气真[MASK]"

        unmask fill-mask runs/bert "The [MASK] sat on the [MASK]." --top-k 3

        cat lines.txt | unmask fill-mask exported/ - --json
    """
    from unmask.api.models import Model
    from unmask.cli.ui.console import print_line

    texts = _texts(text or ["-"])
    model = Model.open(source, checkpoint)
    if model.fills_with_generator:
        print_line("note: masks are filled by the generator of this run; the discriminator predicts no tokens.", True)
    filled = model.fill_mask(texts, top_k)
    if json:
        _print_json(filled)
    else:
        _print_tables(filled)


def _texts(given: Sequence[str]) -> list[str]:
    """The texts that were typed, with the lines of standard input if requested."""
    import sys

    from unmask.core.errors import InputError
    from unmask.data.text.files.encoding import check_surrogates
    from unmask.inference.text_files import read_stdin_lines

    if "-" in given and sys.stdin.isatty():
        sys.stderr.write("Type a text with [MASK] on each line, and Ctrl-D at the end.\n")
    texts = [text for one in given for text in (read_stdin_lines() if one == "-" else (check_surrogates(one, "text"),))]
    if not texts:
        raise InputError('There is no text to fill. For example: unmask fill-mask runs/tiny "今天天气真[MASK]"')
    return texts


def _print_json(filled: Iterable[FilledText]) -> None:
    import json
    import sys
    from dataclasses import asdict

    for one in filled:
        sys.stdout.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")


def _print_tables(filled: Iterable[FilledText]) -> None:
    from rich.text import Text

    from unmask.cli.ui.console import console
    from unmask.inference.fill_mask import MASK

    screen = console()
    for number, one in enumerate(filled):
        if number:
            screen.print()
        sentence = Text(one.text)
        sentence.highlight_words([MASK], "bold magenta")
        screen.print(sentence)
        for place, guesses in enumerate(one.candidates, start=1):
            if len(one.candidates) > 1:
                screen.print(Text(f"mask {place} of {len(one.candidates)}", style="bold"))
            screen.print(_table(guesses))


def _table(guesses: Sequence[TokenProbability]) -> Table:
    """A line for each token: how it is written, its probability, and a bar as long as that."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(min_width=8, max_width=24, overflow="ellipsis", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for guess in guesses:
        shown = guess.token if guess.token.isprintable() else repr(guess.token)
        bar = "#" * round(_BAR * guess.probability)
        table.add_row(Text(f"  {shown}"), f"{100 * guess.probability:.1f} %", Text(bar, style="cyan"))
    return table
