"""Write `docs/reference/cli.md` and `docs/reference/api.md` from the commands and the public names of the package.

python docs/make_reference.py
"""

from __future__ import annotations

import inspect
import pkgutil
import types
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer.main

import unmask
from unmask.cli.main import app

OUT = Path(__file__).parent / "reference"
MADE = "<!-- Written by docs/make_reference.py. -->\n"
CLI_HEAD = """# Command line

`unmask COMMAND --help` prints the same. Every command takes a member's name or `your_file.py:function` where it takes a
recipe. A mistake in the input is one sentence on standard error and exit code 2.
"""
API_HEAD = """# Python API

`import unmask as um` gives the names of this page and nothing else is stable: modules below `unmask.` may move between
versions. Names are imported when they are first used, so `import unmask` does not load torch.
"""


def main() -> None:
    """Write both pages."""
    OUT.mkdir(exist_ok=True)
    (OUT / "cli.md").write_text("\n".join([MADE, CLI_HEAD, *_commands()]), encoding="utf-8")
    (OUT / "api.md").write_text("\n".join([MADE, API_HEAD, *_names()]), encoding="utf-8")


def _commands() -> Iterator[str]:
    group: Any = typer.main.get_command(app)
    known = {name: group.get_command(None, name) for name in group.list_commands(None)}
    rows = (f"| [`{name}`](#{name}) | {_cell(_first_line(command.help))} |" for name, command in known.items())
    yield "| command | |\n|---|---|\n" + "\n".join(rows) + "\n"
    for name, command in known.items():
        options = [one for one in command.params if one.opts[0].startswith("-") and not one.hidden]
        arguments = [one for one in command.params if not one.opts[0].startswith("-")]
        usage = ["unmask", name, *map(_argument_usage, arguments), *(["[OPTIONS]"] if options else [])]
        yield f"## {name}\n\n```text\n{' '.join(usage)}\n```\n\n{_help(command.help)}\n"
        if arguments:
            lines = (f"| `{one.name}` | {_cell(one.help or '')} |" for one in arguments)
            yield "| argument | |\n|---|---|\n" + "\n".join(lines) + "\n"
        if options:
            yield "| option | | default |\n|---|---|---|\n" + "\n".join(map(_option_row, options)) + "\n"


def _argument_usage(argument: Any) -> str:  # noqa: ANN401
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _option_row(option: Any) -> str:  # noqa: ANN401
    names = ", ".join(f"`{one}`" for one in (*option.opts, *option.secondary_opts))
    choices = _choices(getattr(getattr(option, "type_descriptor", None), "annotation", None))
    values = ": " + " \\| ".join(f"`{one}`" for one in choices) if choices else ""
    default = getattr(option.default, "value", option.default)
    shown = f"`{default}`" if isinstance(default, int | float | str | Path) and default not in ("", False) else ""
    return f"| {names}{values} | {_cell(option.help or '')} | {'required' if option.required else shown} |"


def _choices(annotation: object) -> list[str]:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(one.value) for one in annotation]
    return [str(one) for one in get_args(annotation)] if get_origin(annotation) is Literal else []


def _first_line(text: str | None) -> str:
    return " ".join((text or "").strip().partition("\n\n")[0].split())


def _help(text: str | None) -> str:
    """The help of a command: paragraphs as they are, indented lines as a block of shell commands."""
    pieces = []
    for piece in inspect.cleandoc(text or "").replace("\b", "").split("\n\n"):
        indented = all(line.startswith("    ") for line in piece.splitlines() if line)
        pieces.append(f"```bash\n{inspect.cleandoc(piece)}\n```" if indented and piece.strip() else piece.strip())
    return "\n\n".join(one for one in pieces if one).replace("\n```\n\n```bash\n", "\n")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _names() -> Iterator[str]:
    names = [name for name in unmask.__all__ if not name.startswith("_")]
    rows = (
        f"| [`{name}`](#{name.lower()}) | {_cell(_first_line(inspect.getdoc(getattr(unmask, name))))} |"
        for name in names
    )
    yield "| name | |\n|---|---|\n" + "\n".join(rows) + "\n"
    for name in names:
        yield f"## {name}\n"
        yield from _described(getattr(unmask, name))


def _described(value: object) -> Iterator[str]:
    """A directive for mkdocstrings; a module is a list of its names."""
    if isinstance(value, types.ModuleType):
        yield f"{inspect.getdoc(value) or ''}\n"
        yield "\n".join(_members(value)) + "\n"
    else:
        home, name = getattr(value, "__module__", "unmask"), getattr(value, "__qualname__", "")
        yield f"::: {home}.{name}\n    options:\n      show_root_heading: false\n      heading_level: 3\n"


def _members(module: types.ModuleType) -> Iterator[str]:
    """The public names of a module; those of a package are its modules."""
    names = getattr(module, "__all__", None)
    for name in names or [one.name for one in pkgutil.iter_modules(module.__path__)]:
        one = getattr(module, name) if names else import_module(f"{module.__name__}.{name}")
        yield f"- `{name}`: {_cell(_first_line(inspect.getdoc(one)))}"


if __name__ == "__main__":
    main()
