"""Write `docs/members/` from the recipes: the family tree, and one page for each member with its difference to its parent.

python docs/make_family.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from unmask.core.codec import override_many
from unmask.members import count_parameters, member, members, module_of, sizes
from unmask.tasks.recipe import Recipe

HERE = Path(__file__).parent
OUT = HERE / "members"
MADE = "<!-- Written by docs/make_family.py; change the recipe or the script, not this file. -->\n"
HEAD = """# The family

Each member is one file in [recipes/](../../src/unmask/recipes): a function that returns a `Recipe`, a frozen value with
the data, the network and the optimization of a paper. The pages of this folder are made from the recipes.
"""
COUNTED = """## Parameters

With the vocabulary and the row length of each recipe, as papers and `transformers` count: embeddings, layers and the
pooler over the first token, no heads. ELECTRA has no pooler, and its generator is not counted. The Chinese vocabulary
of 21,128 entries makes BERT-base smaller than the 109,482,240 of its English form. Another vocabulary changes the
numbers; `unmask pretrain --dry-run` prints those of a run.
"""
TAKES = """## What any member can take

`--set PATH=VALUE` changes any value of a recipe and exchanges whole parts. `unmask show MEMBER` prints the paths; `*`
stands for every index; a part is written with the fields that differ from their defaults. `show`, `diff`, `walk`,
`audit`, `compare` and `pretrain` take the same words. A short name is looked up next to the part it replaces; any other
is written in full, such as `unmask.data.input_formats.packed.Packed(join=never)`. A recipe that cannot work is refused
with one sentence.

The sentence-pair tasks that papers compare:
"""
MORE = """A member whose rows are pairs already needs only the difference: `unmask show bert --set
"stages.*.tasks.0.examples.negative=swapped" --set "stages.*.tasks.0.objectives.1.fact=order"`. Other exchanges:
"""
TASK = "stages.*.tasks.0"
PAIR_TASKS = (
    (
        "next sentence (BERT)",
        "TASK.examples=SegmentPairs(negative=random)",
        "TASK.objectives=MLM(), RowFactObjective(fact=next)",
    ),
    (
        "sentence order (ALBERT)",
        "TASK.examples=SegmentPairs(negative=swapped)",
        "TASK.objectives=MLM(), RowFactObjective(fact=order)",
    ),
    (
        "both, as three classes",
        "TASK.examples=SegmentPairs(negative=both)",
        "TASK.objectives=MLM(), RowFactObjective(fact=pair)",
    ),
    ("neither, on the same rows", "TASK.objectives=MLM()"),
    ("neither, on full rows (RoBERTa)", "TASK.examples=Packed(join=across)", "TASK.objectives=MLM()"),
)
EXCHANGES = (
    ("static masking, one mask", "masking=StaticMasking(1)"),
    ("static masking, ten masks in turn (BERT)", "masking=StaticMasking(10)"),
    ("dynamic masking, a new mask at every epoch (RoBERTa)", "masking=DynamicMasking"),
    ("rows of one document (DOC-SENTENCES)", "TASK.examples=Packed(join=never)", "TASK.objectives=MLM()"),
    ("whole-word masking (BERT-wwm)", "TASK.corruption.select=WholeUnits(layer=word)"),
    ("span boundary objective (SpanBERT)", "TASK.objectives=MLM(), SBO()"),
    ("another optimizer", "optim.optimizer=LAMB(lr=1e-3)"),
)
WIDTH = "100"


def main() -> None:
    """Write every page; pages of members that no longer exist are removed."""
    pages = {"index.md": _index()} | {f"{recipe.name}.md": _page(recipe) for recipe in members()}
    OUT.mkdir(exist_ok=True)
    for old in OUT.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (OUT / name).write_text(text, encoding="utf-8")
    _list_in_navigation()


def _list_in_navigation() -> None:
    """Name the pages in `mkdocs.yml`, between the sections before and after them."""
    path = HERE.parent / "mkdocs.yml"
    before, mark, rest = path.read_text(encoding="utf-8").partition("  - Members:\n")
    after = rest[rest.index("  - Extend:") :]
    names = sorted(recipe.name for recipe in members())
    lines = ["      - Family: members/index.md", *(f"      - {name}: members/{name}.md" for name in names)]
    path.write_text("\n".join([before + mark.rstrip("\n"), *lines, after]), encoding="utf-8")


def _index() -> str:
    """The tree, the members in a table, their parameters, and overrides that fit any member."""
    pieces = [
        MADE,
        HEAD,
        _shown("family"),
        _members_table(),
        COUNTED,
        _sizes_table(),
        TAKES,
        _overrides_table(PAIR_TASKS),
    ]
    return "\n".join([*pieces, MORE, _overrides_table(EXCHANGES)])


def _page(recipe: Recipe) -> str:
    """One member: its paper, what it changed, and the difference to its parent (the root in full)."""
    file = Path(module_of(recipe.name).__file__ or "").name
    lines = [
        MADE,
        f"# {recipe.name}\n",
        f"*{recipe.title}* ({recipe.year}), {_paper(recipe.paper)}: {recipe.summary}.\n",
        f"Recipe: [recipes/{file}](../../src/unmask/recipes/{file})\n",
        _changes(recipe.name),
    ]
    if recipe.parent:
        lines += [f"## Against [{recipe.parent}]({recipe.parent}.md)\n", _shown("diff", recipe.name, recipe.parent)]
    else:
        lines += ["## In full\n", _shown("show", recipe.name)]
    return "\n".join(lines)


def _paper(number: str) -> str:
    kind, _, rest = number.partition(":")
    return f"[{number}](https://arxiv.org/abs/{rest})" if kind == "arXiv" else number


def _members_table() -> str:
    rows = (
        f"| [{one.name}]({one.name}.md) | {one.year} | {_paper(one.paper)} | {one.summary} | {one.model_type} |"
        for one in members()
    )
    return (
        "\n".join(["| member | year | paper | what it changed | exported as |", "|---|---|---|---|---|", *rows]) + "\n"
    )


def _sizes_table() -> str:
    """A line for each member, a column for each size."""
    names = list(dict.fromkeys(size for recipe in members() for size in sizes(recipe.name)))
    return "\n".join([f"| member | {' | '.join(names)} |", "|---|" + "---:|" * len(names), *_size_rows(names)]) + "\n"


def _size_rows(names: Sequence[str]) -> Iterator[str]:
    for recipe in members():
        known = sizes(recipe.name)
        counts = (f"{count_parameters(member(recipe.name, size)):,}" if size in known else "" for size in names)
        yield f"| {recipe.name} | {' | '.join(counts)} |"


def _overrides_table(exchanges: Sequence[tuple[str, ...]]) -> str:
    """What is exchanged, and the words for it; each is tried on BERT before it is written."""
    lines = ["| exchange | words |", "|---|---|"]
    for label, *words in exchanges:
        changes = [word.replace("TASK", TASK).partition("=") for word in words]
        override_many(member("bert"), [(path, value) for path, _, value in changes])
        shown = " ".join(f'--set "{word}"' for word in words).replace("TASK", TASK)
        lines.append(f"| {label} | `{shown}` |")
    return "\n".join(lines) + "\n"


def _changes(name: str) -> str:
    """The docstring of the member's file without its first line."""
    return (module_of(name).__doc__ or "").partition("\n\n")[2].strip() + "\n"


def _shown(*words: str) -> str:
    """A command and its output."""
    environment = {**os.environ, "COLUMNS": WIDTH, "TERM": "dumb", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "unmask", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    lines = "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())
    return f"```console\n$ unmask {' '.join(words)}\n{lines}\n```\n"


if __name__ == "__main__":
    main()
