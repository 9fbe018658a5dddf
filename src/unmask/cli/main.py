"""The command line. Each command is a module of its own that is imported when the command is used."""

from __future__ import annotations

import errno
import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

from unmask import __version__

_COMMANDS = {
    "demo": "demo:demo",
    "prepare": "prepare:prepare",
    "similar-words": "similar_words:similar_words",
    "walk": "walk:walk",
    "audit": "audit:audit",
    "pretrain": "pretrain:pretrain",
    "finetune": "finetune:finetune",
    "multitask": "multitask:multitask",
    "predict": "predict:predict",
    "evaluate": "evaluate:evaluate",
    "compare": "compare:compare",
    "claim": "claim:claim",
    "landscape": "landscape:landscape",
    "fill-mask": "fill_mask:fill_mask",
    "embed": "embed:embed",
    "export": "export:export",
    "report": "report:report",
    "family": "family:family",
    "show": "family:show",
    "diff": "family:diff",
}
"""The module and the function of each command; a module is imported when its command is looked up."""


class _LazyGroup(TyperGroup):
    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(_COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]  # noqa: ANN401
        if cmd_name not in _COMMANDS:
            return None
        module, _, function = _COMMANDS[cmd_name].partition(":")
        alone = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
        alone.command(cmd_name)(getattr(import_module(f"unmask.cli.{module}"), function))
        return typer.main.get_command(alone)


app = typer.Typer(
    cls=_LazyGroup,
    name="unmask",
    help="Pre-train, fine-tune, compare and export the BERT family. Start with: unmask demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unmask {__version__}")
        raise typer.Exit


_VERSION = typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)


@app.callback()
def _options(version: Annotated[bool, _VERSION] = False) -> None:
    """Options before a command."""


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
    """Print the reason of an exit, if standard error is still open."""
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
