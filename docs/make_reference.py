"""Write `docs/reference/cli.md` and `docs/reference/api.md` from the commands and the public names of the package.

python docs/make_reference.py
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path

import click
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
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group) or hasattr(group, "commands")
    known = group.commands
    yield "| command | |\n|---|---|"
    yield (
        "\n".join(f"| [`{name}`](#{name}) | {_cell(_first_line(command.help))} |" for name, command in known.items())
        + "\n"
    )
    for name, command in known.items():
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        options = [
            one for one in command.params if one.param_type_name == "option" and not getattr(one, "hidden", False)
        ]
        usage = " ".join(["unmask", name, *(_argument_name(one) for one in arguments), "[OPTIONS]" if options else ""])
        yield f"## {name}\n\n```text\n{usage.strip()}\n```\n\n{_help(command.help)}\n"
        if arguments:
            yield "| argument | |\n|---|---|"
            yield (
                "\n".join(
                    f"| `{one.human_readable_name}` | {_cell(getattr(one, 'help', '') or '')} |" for one in arguments
                )
                + "\n"
            )
        if options:
            yield "| option | | default |\n|---|---|---|"
            yield "\n".join(_option(one) for one in options) + "\n"


def _argument_name(argument: click.Parameter) -> str:
    name = argument.human_readable_name.upper()
    name = f"{name}..." if argument.nargs == -1 else name
    return name if argument.required else f"[{name}]"


def _option(option: click.Parameter) -> str:
    names = ", ".join(f"`{one}`" for one in (*option.opts, *option.secondary_opts))
    choices = getattr(option.type, "choices", None)
    if choices:
        names += " " + " \\| ".join(f"`{getattr(one, 'value', one)}`" for one in choices)
    default = option.default
    plain = (
        default is not None
        and not callable(default)
        and default not in ("", (), [], False)
        and "Sentinel" not in repr(type(default))
    )
    value = f"`{getattr(default, 'value', default)}`" if plain else ""
    return f"| {names} | {_cell(getattr(option, 'help', '') or '')} | {'required' if option.required else value} |"


def _first_line(text: str | None) -> str:
    return " ".join((text or "").strip().partition("\n\n")[0].split())


def _help(text: str | None) -> str:
    """The help of a command: paragraphs as they are, indented lines as a block of shell commands."""
    pieces = []
    for piece in inspect.cleandoc(text or "").replace("\b", "").split("\n\n"):
        indented = all(line.startswith("    ") for line in piece.splitlines() if line)
        pieces.append(f"```bash\n{inspect.cleandoc(piece)}\n```" if indented and piece.strip() else piece.strip())
    return "\n\n".join(one for one in pieces if one)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _names() -> Iterator[str]:
    names = [name for name in unmask.__all__ if not name.startswith("_")]
    yield "| name | |\n|---|---|"
    yield (
        "\n".join(
            f"| [`{name}`](#{name.lower()}) | {_cell(_first_line(inspect.getdoc(getattr(unmask, name))))} |"
            for name in names
        )
        + "\n"
    )
    for name in names:
        yield f"## {name}\n"
        yield from _described(getattr(unmask, name))


def _described(value: object) -> Iterator[str]:
    """A directive for mkdocstrings; a module is a list of its names."""
    if isinstance(value, types.ModuleType):
        public = getattr(value, "__all__", [one for one in vars(value) if re.match(r"[A-Za-z]", one)])
        yield f"{inspect.getdoc(value) or ''}\n"
        for name in public:
            one = getattr(value, name)
            yield f"- `{value.__name__.removeprefix('unmask.')}.{name}`: {_cell(_first_line(inspect.getdoc(one)))}"
        yield ""
    else:
        home, name = getattr(value, "__module__", "unmask"), getattr(value, "__qualname__", "")
        yield f"::: {home}.{name}\n    options:\n      show_root_heading: false\n      heading_level: 3\n"


if __name__ == "__main__":
    main()
