"""Writes `docs/family.md` anew from the members: `python docs/make_family.py`, and then read the difference."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from unmask.core.codec import override_many
from unmask.members import count_parameters, member, members, module_of, sizes

HERE = Path(__file__).parent
HEAD = """# The family

Made by `python docs/make_family.py`; every member is found by walking `recipes/`, and a
paper is printed as what it changed.
"""
COUNTED = """## Parameters

With the vocabulary and the row length of each recipe, as papers and `transformers` count: embeddings, layers and the
pooler over the first token, no heads. ELECTRA has no pooler, and its generator is not counted. The Chinese vocabulary
of 21,128 entries makes BERT-base smaller than the 109,482,240 of its English form. A vocabulary of your own changes the
numbers; `unmask pretrain --dry-run` prints those of a run.
"""
TAKES = """## What any member can take

A member is made of parts, and `--set` exchanges them: `unmask show MEMBER` prints the paths, a `*` stands for every
place, and a part is written with the fields that are not as usual. `show`, `diff`, `walk`, `audit` and `pretrain` take
the same words. A short name is looked for beside the part that stands there; any other is written in full, such as
`unmask.data.input_formats.packed.Packed(join=never)`. What cannot work together is refused in a sentence.

What must be said about two segments is what papers set against each other:
"""
MORE = """A member of pairs only needs what changes: `unmask show bert --set "stages.*.tasks.0.examples.negative=swapped"
--set "stages.*.tasks.0.learns.1.truth=order"`. Other exchanges of this kind:
"""
WISHES = (
    ("next sentence (BERT)", "TASK.examples=Pairs(negative=random)", "TASK.learns=MLM(), SayTruth(truth=next)"),
    ("sentence order (ALBERT)", "TASK.examples=Pairs(negative=swapped)", "TASK.learns=MLM(), SayTruth(truth=order)"),
    ("both, as three classes", "TASK.examples=Pairs(negative=both)", "TASK.learns=MLM(), SayTruth(truth=pair)"),
    ("neither, on the same rows", "TASK.learns=MLM()"),
    ("neither, on full rows (RoBERTa)", "TASK.examples=Packed(join=across)", "TASK.learns=MLM()"),
)
MORE_WISHES = (
    ("one mask for ever", "renew=Copies(1)"),
    ("ten masks in turn (BERT)", "renew=Copies(10)"),
    ("a new mask at every visit (RoBERTa)", "renew=EveryVisit"),
    ("rows of one document (DOC-SENTENCES)", "TASK.examples=Packed(join=never)", "TASK.learns=MLM()"),
    ("whole words (BERT-wwm)", "TASK.corrupt.select=Units(layer=word)"),
    ("spans from their borders (SpanBERT)", "TASK.learns=MLM(), SBO()"),
    ("another optimiser", "descent.optimiser=LAMB(rate=1e-3)"),
)
WIDTH = "80"


def main() -> None:
    """One block for the tree, one for each member against its parent."""
    pieces = [HEAD, _shown("family"), COUNTED, _sizes(), TAKES, _table(WISHES), MORE, _table(MORE_WISHES)]
    for recipe in members():
        if recipe.parent:
            heading = f"## {recipe.name}, against {recipe.parent}\n"
            pieces += [heading, _changes(recipe.name), _shown("diff", recipe.name, recipe.parent)]
    (HERE / "family.md").write_text("\n".join(pieces), encoding="utf-8")


def _sizes() -> str:
    """A line for each member, a column for each size."""
    names = list(dict.fromkeys(size for recipe in members() for size in sizes(recipe.name)))
    lines = [f"| member | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for recipe in members():
        known = sizes(recipe.name)
        told = (f"{count_parameters(member(recipe.name, size)):,}" if size in known else "" for size in names)
        lines.append(f"| {recipe.name} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def _table(wishes: Sequence[tuple[str, ...]]) -> str:
    """What is wished for, and the words for it; each is tried on BERT before it is written down."""
    lines = ["| wish | words |", "|---|---|"]
    for wish, *words in wishes:
        changes = [word.replace("TASK", "stages.*.tasks.0").partition("=") for word in words]
        override_many(member("bert"), [(path, typed) for path, _, typed in changes])
        told = " ".join(f'--set "{word}"' for word in words).replace("TASK", "stages.*.tasks.0")
        lines.append(f"| {wish} | `{told}` |")
    return "\n".join(lines) + "\n"


def _changes(name: str) -> str:
    """What the file of a member says about itself, without its first line."""
    return (module_of(name).__doc__ or "").partition("\n\n")[2].strip() + "\n"


def _shown(*words: str) -> str:
    """A command and what it prints."""
    quiet = {**os.environ, "COLUMNS": WIDTH, "TERM": "dumb", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "unmask", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=quiet, check=True)
    lines = "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())
    return f"```console\n$ unmask {' '.join(words)}\n{lines}\n```\n"


if __name__ == "__main__":
    main()
