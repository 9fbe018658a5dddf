"""`fill`: what a network would put where a token is missing.

What arrives: a network, and texts with `[MASK]` in them. What leaves: for each mask the likeliest tokens with their
probabilities, as a table with bars or as JSON, a line for each text.
What never happens here: guessing; see `unmask.inference.fill_mask`.
"""

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
"""The columns of a bar that says: certain."""


def fill(
    source: Annotated[Path, typer.Argument(help="A run folder of pretrain, or a Hugging Face folder.")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts with [MASK]; - or nothing: standard input.", show_default=False)
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many tokens to show for each mask.")] = 5,
    checkpoint: Annotated[CheckpointChoice, typer.Option(help="Which checkpoint of a run.")] = CheckpointChoice.LAST,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, a line for each text.")] = False,
) -> None:
    """Fill the masks of a text: the likeliest tokens for each, with their probabilities.

    Examples:

        unmask fill runs/bert "今天天气真[MASK]"

        unmask fill runs/bert "The [MASK] sat on the [MASK]." --top 3

        cat lines.txt | unmask fill exported/ - --json
    """
    from unmask.cli.ui.console import print_line
    from unmask.inference.fill_mask import fill_masks as fill_masks
    from unmask.inference.fill_mask import mask_filler
    from unmask.loading.open_model import open_model

    texts = _texts(text or ["-"])
    opened = open_model(source, checkpoint)
    model = mask_filler(opened.model, opened.generator)
    if model is opened.generator:
        print_line("note: masks are filled by the generator of this run; its discriminator says no tokens.", True)
    filled = fill_masks(model, opened.tokenizer, texts, top)
    if json:
        _print_json(filled)
    else:
        _print_tables(filled)


def _texts(given: Sequence[str]) -> list[str]:
    """The texts that were typed, with the lines of standard input where it was asked for."""
    import sys

    from unmask.core.errors import InputError
    from unmask.data.text.files.encoding import check_surrogates
    from unmask.inference.text_files import read_stdin_lines

    if "-" in given and sys.stdin.isatty():
        sys.stderr.write("Type a text with [MASK] on each line, and Ctrl-D at the end.\n")
    texts = [text for one in given for text in (read_stdin_lines() if one == "-" else (check_surrogates(one, "text"),))]
    if not texts:
        raise InputError('There is no text to fill. For example: unmask fill runs/tiny "今天天气真[MASK]"')
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
