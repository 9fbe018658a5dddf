"""Writes `docs/family.md` anew from the members: `python docs/make_family.py`, and then read the difference."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from unmask.family import members

HERE = Path(__file__).parent
HEAD = """# The family

Made by `python docs/make_family.py`; every member is found by walking `recipes/`, and a
paper is printed as what it changed.
"""
WIDTH = "100"


def main() -> None:
    """One block for the tree, one for each member against its parent."""
    pieces = [HEAD, _shown("family")]
    for recipe in members():
        if recipe.parent:
            heading = f"## {recipe.name}, against {recipe.parent}\n"
            pieces += [heading, _changes(recipe.name), _shown("diff", recipe.name, recipe.parent)]
    (HERE / "family.md").write_text("\n".join(pieces), encoding="utf-8")


def _changes(name: str) -> str:
    """What the file of a member says about itself, without its first line."""
    told = import_module(f"unmask.recipes.{name}").__doc__ or ""
    return told.partition("\n\n")[2].strip() + "\n"


def _shown(*words: str) -> str:
    """A command and what it prints."""
    quiet = {**os.environ, "COLUMNS": WIDTH, "TERM": "dumb", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "unmask", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=quiet, check=True)
    lines = "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())
    return f"```console\n$ unmask {' '.join(words)}\n{lines}\n```\n"


if __name__ == "__main__":
    main()
