"""Documentation: links, command lines, options, recipe overrides and Python blocks agree with the code."""

import ast
import contextlib
import functools
import importlib
import io
import json
import re
import shlex
from itertools import islice
from pathlib import Path

import pytest
import typer.main

from unmask.api.short_run import short_recipe
from unmask.cli.main import app
from unmask.core.codec import override_many
from unmask.core.errors import UserError
from unmask.data.text.sample_corpora import peoples_daily, reviews
from unmask.members import members
from unmask.tasks.presets import presets

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")])
OTHER_OPTIONS = {  # of torchrun and of the scripts in bench/ and experiments/
    *("--shutdown-timeout", "--words", "--audit", "--text", "--growth", "--sizes", "--members", "--grow", "--profile"),
    *("--sweep", "--threads"),
}
SHELLS = ("bash", "sh", "console")
HISTORY = {"CHANGELOG.md"}


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks(page, *languages):
    """Fenced blocks of these languages, with the number of their first line."""
    found, block, start, indent = [], None, 0, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fence = re.match(r"(\s*)```(\w*)", line)
        if fence and block is None:
            block, start, indent = (fence[2], []), number + 1, fence[1]
        elif fence:
            if block[0] in languages:
                found.append((start, "\n".join(block[1])))
            block = None
        elif block is not None:
            block[1].append(line.removeprefix(indent))
    return found


def prose(page):
    return re.sub(r"^\s*```.*?^\s*```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def headings(page):
    """The anchors of a page, as GitHub and mkdocs make them."""
    titles = re.findall(r"^#+ (.*)$", prose(page), flags=re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", title).strip()) for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in headings(file), target


def shell_commands(page):
    """Command lines in shell blocks; a console block marks them with a dollar sign."""
    for language in SHELLS:
        for _, text in blocks(page, language):
            text = re.sub(r"<<'(\w+)'\n.*?^\1$", "", text.replace("\\\n", " "), flags=re.M | re.S)
            for line in text.splitlines():
                if language != "console":
                    yield line
                elif line.startswith("$ "):
                    yield line[2:]


def unmask_calls(page):
    """Arguments after `unmask`, in shell blocks and in code spans of the text."""
    spans = re.findall(r"`((?:python -m )?unmask [^`]*)`", prose(page))
    for line in [*shell_commands(page), *(span.replace("\n", " ") for span in spans)]:
        for part in re.split(r"\|\|?|&&|;|\$\(|(?<!\S)again=", line):
            try:
                words = shlex.split(part, comments=True)
            except ValueError:
                words = part.split()
            if len(words) == 1 and words[0].startswith("unmask "):
                words = shlex.split(words[0])
            if "unmask" in words[:9] and not any(word.startswith(("pip", "cd", "git")) for word in words[:1]):
                yield words[words.index("unmask") + 1 :]


@functools.cache
def commands():
    group = typer.main.get_command(app)
    return {name: group.get_command(None, name) for name in group.list_commands(None)}


def options_of(command):
    return {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_options_exist(page):
    for words in unmask_calls(page):
        if not words or words[0].startswith(("-", "…", "(")) or words[0].isupper():
            continue
        assert words[0] in commands(), f"unmask {' '.join(words)}"
        known = options_of(commands()[words[0]])
        for word in words[1:]:
            if re.match(r"--?[a-z]\S*$", word) and "…" not in word:
                assert word.partition("=")[0] in known, f"unmask {' '.join(words)}: {word}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in HISTORY], ids=name_of)
def test_options_in_the_text_exist(page):
    known = {"--version"}.union(*map(options_of, commands().values())) | OTHER_OPTIONS
    for span in re.findall(r"`([^`]+)`", prose(page)):
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", span):
            if "pip" not in span and "python" not in span and "pytest" not in span and "torchrun" not in span:
                assert option in known, f"`{span}`"


def overrides(page):
    """The overrides of each line, as pairs of path and value."""
    for line in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        found = []
        for groups in re.findall(r"--set[ =](?:\"([^\"`]+)\"|'([^'`]+)'|([^\s\"'`]+))", line):
            path, mark, value = "".join(groups).partition("=")
            if mark and path and value and not re.search(r"…|\.\.\.|PATH|VALUE|\$|[{}]", "".join(groups)):
                found.append((re.sub(r"^\w+:", "", path), value))
        if found:
            yield found


def refusal(changes):
    """Why no member takes these overrides; empty if one does."""
    sentences = []
    known = members()
    for recipe in [*known, *map(short_recipe, known), *(one.task for one in presets())]:
        try:
            override_many(recipe, changes)
        except UserError as error:
            sentences.append(str(error))
        else:
            return ""
    return sentences[0]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_overrides_fit_a_member(page):
    for line in overrides(page):
        if refusal(line):  # a line of alternatives
            for change in line:
                assert not refusal([change]), change


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_parse_and_their_imports_resolve(page):
    heredocs = [
        text
        for _, block in blocks(page, "bash")
        for text in re.findall(r"<<'PYTHON'\n(.*?)^PYTHON$", block, re.M | re.S)
    ]
    for text in [*(text for _, text in blocks(page, "python")), *heredocs]:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                home = importlib.import_module(node.module)
                for alias in node.names:
                    if not hasattr(home, alias.name):
                        importlib.import_module(f"{node.module}.{alias.name}")
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    importlib.import_module(alias.name)


def sample_files(folder):
    """The files that the front pages name, in small."""
    (folder / "news.txt").write_text("\n\n".join(one.text for one in islice(peoples_daily(), 150)), encoding="utf-8")
    some = islice(reviews(), 0, None, 100)
    rows = [json.dumps({"text": text, "label": label}, ensure_ascii=False) for text, label in some]
    (folder / "reviews.train.jsonl").write_text("\n".join(rows[::2]), encoding="utf-8")
    (folder / "reviews.dev.jsonl").write_text("\n".join(rows[1::2]), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md"])
def test_python_of_the_front_pages_runs(name, tmp_path, monkeypatch):
    """Every block in order, in one namespace, with 2 training steps; what needs files of the shell is left out."""
    monkeypatch.chdir(tmp_path)
    sample_files(tmp_path)
    scope = {}
    for number, text in blocks(ROOT / name, "python"):
        if "from transformers" in text:
            continue
        text = re.sub(r"steps=\d+", "steps=2", text)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile("\n" * (number - 1) + text, name, "exec"), scope)


def files_named_in(page):
    """Paths of the repository in code spans and in comments of the page."""
    for span in re.findall(r"`([^`\s]+)`", prose(page)):
        if re.fullmatch(r"(?:[\w.-]+/)+[\w.-]*\.(?:py|sh|css|js)", span):
            yield span


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in HISTORY], ids=name_of)
def test_files_of_the_repository_exist(page):
    for name in files_named_in(page):
        assert any((base / name).exists() for base in (ROOT, ROOT / "src" / "unmask")), name


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r"[\w/.-]+\.md", navigation)
    assert sorted(listed) == sorted(
        str(page.relative_to(ROOT / "docs")) for page in PAGES if (ROOT / "docs") in page.parents
    )
