"""The command line: thin commands over the parts.

What arrives: words from a shell. What leaves: a call of a part, and its result in words; a user's mistake is one
sentence and exit code 2. What never happens here: work. Each command imports what it needs when it runs.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

from unmask import __version__
from unmask.cli import (
    audit,
    claim,
    compare,
    demo,
    embed,
    evaluate,
    export,
    family,
    fill_mask,
    finetune,
    landscape,
    multitask,
    predict,
    prepare,
    pretrain,
    report,
    similar_words,
    walk,
)

app = typer.Typer(
    name="unmask",
    help="Every member of BERT's family out of one kit: prepare, pre-train, fine-tune, export. Start with: unmask demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
_COMMANDS = (
    demo.demo,
    prepare.prepare,
    similar_words.similar_words,
    walk.walk,
    audit.audit,
    pretrain.pretrain,
    finetune.finetune,
    multitask.multitask,
    predict.predict,
    evaluate.evaluate,
    compare.compare,
    claim.claim,
    landscape.landscape,
    fill_mask.fill_mask,
    embed.embed,
    export.export,
    report.report,
    family.family,
    family.show,
    family.diff,
)
for _command in _COMMANDS:
    app.command()(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unmask {__version__}")
        raise typer.Exit


_VERSION = typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)


@app.callback()
def _options(version: Annotated[bool, _VERSION] = False) -> None:
    """What can be said before a command."""


def main() -> None:
    """Run the command line."""
    from unmask.core.errors import UserError

    # One process means one core: parallelism is ours to arrange, and a tokenizer's own threads would only compete.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # A thread that waits for others keeps its core for a millisecond by default, and two runs on one machine are then
    # fifty times as slow as one. A few microseconds serve a run alone as well.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and (stream.isatty() or stream is sys.stderr):
            # A terminal that cannot show a character gets its number. What is piped stays what it is, or fails.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except UserError as error:
        _print_error(str(error))
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _print_error(_disk_full_text(error))


def _disk_full_text(error: OSError) -> str:
    """Which disk is full. A file that could not be made has a name; what is shown has none."""
    from unmask.core.io.atomic import DiskFullAdvice

    if error.filename is not None:
        return f"The disk under {error.filename} is full. {DiskFullAdvice.FINISHED}"
    _discard_output(sys.stdout)
    return "The disk that the output is written to is full: free some space, or show it here."


def _print_error(sentence: str) -> NoReturn:
    """Say why nothing more is done, to whoever can still be told."""
    try:
        sys.stderr.write(f"unmask: {sentence}\n")
        sys.stderr.flush()
    except OSError:
        _discard_output(sys.stderr)
    sys.exit(2)


def _discard_output(stream: TextIO) -> None:
    """What is left to be written there can go nowhere, and must not fail once more when Python ends."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
