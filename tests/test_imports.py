"""The order of the packages, checked in the source; and what a command must not load, checked by loading it.

    core <- config <- data (text <- tokenize <- corpus <- input_formats <- corrupt)          (numpy, never torch)
        <- nets <- objectives <- tasks <- recipes <- members <- audits, similar_words, walks <- reports <- train
        <- inference <- interop <- loading <- finetuning <- evaluation <- api <- lab <- cli

A module may import its own package and whatever stands before it. `train` imports no recipes and no reports.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import unmask
from unmask.cli.main import _COMMANDS

ROOT = Path(unmask.__file__).parent
ORDER = (
    ("core",),
    ("config",),
    ("data.text",),
    ("data.tokenize",),
    ("data.corpus",),
    ("data.input_formats",),
    ("data.corrupt",),
    ("nets",),
    ("objectives",),
    ("tasks",),
    ("recipes",),
    ("members",),
    ("audits", "data.similar_words", "walks"),
    ("reports",),
    ("train",),
    ("inference",),
    ("interop",),
    ("loading",),
    ("finetuning",),
    ("evaluation",),
    ("api",),
    ("parts",),
    ("lab",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
DATA_HALF = frozenset(name for name, rank in RANK.items() if rank <= RANK["data.corrupt"])
NO_NETWORK = DATA_HALF | {"tasks", "recipes", "members", "audits", "data.similar_words", "walks", "reports", "parts"}
"""What prepares, shows and audits text. A task names objectives, but their heads are loaded with the network only."""
BARRED = {("train", "recipes"), ("train", "reports"), ("train", "members"), ("recipes", "train")}
BUILDS = {(f"unmask.config.{name}", "nets") for name in ("network", "non_attention", "transformer")}
"""A configuration builds its network: these imports stand in functions, so that no configuration loads torch."""
HEAVY = frozenset({"torch", "transformers", "gensim", "pyarrow"})
COMMANDS = tuple(_COMMANDS)
MOST_MODULES = 140
"""Modules of the package that a pre-training run loads, packages included."""


def module_name(path: Path) -> str:
    parts = ("unmask", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed."""
    return {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def home(module: str) -> str:
    """The package of a module, below `data` with the name of the subpackage; empty for the root and for `data`."""
    words = module.split(".")[1:]
    if words[:1] == ["data"]:
        return ".".join(words[:2]) if len(words) > 1 else ""
    return words[0] if words else ""


def imports(tree: ast.AST) -> Iterator[str]:
    """Every absolute name that is imported anywhere in a tree, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(tree: ast.AST) -> set[str]:
    """The modules of this package that a tree imports."""
    return {name for name in imports(tree) if name in modules() and home(name)}


def loaded_at_once(tree: ast.AST) -> ast.Module:
    """The statements of a module that run when it is imported: no function bodies, nothing for type checkers alone."""

    class Outer(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            return None

        def visit_If(self, node: ast.If) -> ast.If | None:
            return None if "TYPE_CHECKING" in ast.unparse(node.test) else node

    outer = Outer().visit(ast.parse(ast.unparse(tree)))
    assert isinstance(outer, ast.Module)
    return outer


def test_every_module_has_its_place_in_the_order() -> None:
    unknown = {home(module) for module in modules()} - RANK.keys() - {""}
    assert not unknown, f"give {', '.join(sorted(unknown))} a place in ORDER"


@pytest.mark.parametrize("part", sorted({home(module) for module in modules()} & RANK.keys()))
def test_imports_point_one_way(part: str) -> None:
    wrong = [
        f"{module} imports {name}"
        for module, tree in modules().items()
        if home(module) == part
        for name in own_imports(tree)
        if home(name) != part and (module, home(name)) not in BUILDS
        if RANK.get(home(name), 0) > RANK[part] or (part, home(name)) in BARRED
    ]
    assert not wrong


def test_no_module_needs_itself_to_be_imported() -> None:
    graph = {module: own_imports(loaded_at_once(tree)) - {module} for module, tree in modules().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))


def test_nothing_in_the_data_half_names_torch() -> None:
    named = {
        module: sorted(found)
        for module, tree in modules().items()
        if home(module) in DATA_HALF
        if (found := {name.split(".")[0] for name in imports(tree)} & {"torch", "transformers"})
    }
    assert not named


def test_loading_the_data_half_and_all_that_shows_and_audits_it_asks_for_no_torch() -> None:
    names = [module for module in modules() if home(module) in NO_NETWORK]
    script = f"""
import importlib, json, sys
asked = []
class Watch:
    def find_spec(self, name, path=None, target=None):
        asked.extend([name] if name in ("torch", "transformers") else [])
sys.meta_path.insert(0, Watch())
for name in {names!r}:
    importlib.import_module(name)
from unmask.members import members
from unmask.tasks.presets import presets
assert members() and presets()
print(json.dumps(asked))
"""
    assert len(names) > 50
    assert json.loads(_python("-c", script)) == []


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    script = f"""
import sys
sys.argv = ["unmask", "--help"]
from unmask.cli.main import main
try:
    main()
except SystemExit as stop:
    assert not stop.code
print("heavy:", sorted(set(sys.modules) & {set(HEAVY)!r}))
"""
    began = _children_seconds()
    said = _python("-c", script)
    assert _children_seconds() - began < 0.5
    assert "Usage" in said
    assert all(command in said for command in COMMANDS)
    assert said.splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_loads_nothing_heavy(command: str) -> None:
    said = _python("-X", "importtime", "-m", "unmask", command, "--help")
    loaded = {line.rsplit("|", 1)[-1].strip() for line in said.splitlines()}
    assert "Usage" in said
    assert "unmask.cli.main" in loaded
    assert not loaded & HEAVY


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = f"import sys, unmask; dir(unmask); print(sorted(set(sys.modules) & {set(HEAVY | {'numpy'})!r}))"
    assert json.loads(_python("-c", script).strip().replace("'", '"')) == []


@pytest.mark.parametrize("member", ["wwm", "electra", "albert"])
def test_a_pre_training_loads_few_modules(member: str, tmp_path: Path) -> None:
    text = "".join(f"今天是第{number}天。\n天气很好。\n\n" for number in range(80))
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    words = ("--for", "wwm", "--vocab-size", "200", "--out", str(tmp_path / "data"), "-j", "1")
    _python("-m", "unmask", "prepare", str(tmp_path / "text.txt"), *words)
    script = """
import json, sys
from unmask.cli.main import app
try:
    app(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code
print(json.dumps([name for name in sys.modules if name.split(".")[0] == "unmask"]))
"""
    few = ("--set", "stages.*.max_length=16", "--set", "stages.*.batch_size=4", "--num-evals", "1", "--steps", "2")
    words = ("--data", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--size", "tiny")
    loaded = json.loads(_python("-c", script, "pretrain", member, *words, *few).splitlines()[-1])
    assert "unmask.train.loop" in loaded
    assert len(loaded) <= MOST_MODULES


def _children_seconds() -> float:
    """Processor time of all interpreters so far; unlike the clock it does not mind what else the machine does."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _python(*arguments: str) -> str:
    """What an interpreter of its own prints, to either side."""
    quiet = {**os.environ, "TERM": "dumb", "COLUMNS": "100"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=quiet, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + (done.stderr if "importtime" in arguments else "")
