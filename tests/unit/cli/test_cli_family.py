"""`unmask family`, `show` and `diff`: who is there, and rows that are paths for `--set`."""

from __future__ import annotations

import pytest
from typer import Typer
from typer.testing import CliRunner

from unmask.cli.family import diff, family, show
from unmask.core.codec import difference, override
from unmask.core.errors import RecipeError
from unmask.members import count_parameters, member, members

APP = Typer()
for command in (family, show, diff):
    APP.command()(command)


def call(*words: str) -> str:
    result = CliRunner().invoke(APP, list(words))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0
    return result.stdout


def test_a_heading_and_a_row_are_a_path_that_can_be_set() -> None:
    paths, heading = [], ""
    for line in call("diff", "macbert", "wwm").splitlines()[1:]:
        word = line.split()[0]
        if len(line.split()) == 1:
            heading = word
        elif line.startswith("  ") and not line.startswith("   "):
            paths.append(f"{heading}.{word}")
    assert "stages.0.tasks.0.corruption.select.run_lengths" in paths
    assert "stages.0.max_length" in paths
    assert set(paths) <= {row.path for row in difference(member("wwm"), member("macbert"))}
    assert override(member("wwm"), "stages.0.max_length", "64").stages[0].max_length == 64


def test_a_stage_that_is_not_there_is_told_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = " ".join(call("diff", "roberta", "bert").split())
    assert "stages.1 Stage(max_length=512, batch_size=256, fraction=0.1, ...) nothing" in lines


def test_what_does_not_differ_is_said_to_be_the_same() -> None:
    assert call("diff", "bert", "bert") == "bert and bert are the same.\n"


def test_a_change_applies_to_the_first_member() -> None:
    lines = call("diff", "bert", "bert", "--set", "stages.1.max_length=256").splitlines()
    assert [line.split() for line in lines] == [
        ["bert", "bert", "(changed)"],
        ["stages.1"],
        ["max_length", "512", "256"],
    ]
    with pytest.raises(RecipeError, match="needs a whole number, found 'long'"):
        call("diff", "bert", "bert", "--set", "stages.1.max_length=long")


def test_numbers_are_shown_with_four_digits() -> None:
    assert "run_lengths: (0.2241, 0.1792," in call("show", "spanbert")


def test_a_member_is_shown_in_another_size() -> None:
    assert "depth: 12\n    width: 256" in call("show", "electra", "--size", "small")
    with pytest.raises(RecipeError, match="no size 'huge'"):
        call("show", "electra", "--size", "huge")


def test_the_tree_names_everyone_with_year_paper_change_and_parameters() -> None:
    lines = call("family").splitlines()
    for recipe in members():
        (at,) = (n for n, line in enumerate(lines) if f" {recipe.name} {recipe.year} " in f" {line} ")
        assert recipe.paper in lines[at]
        assert f"{count_parameters(recipe):,} parameters" in lines[at]
        assert recipe.summary in lines[at + 1]
    assert lines[-1].startswith("parameters: embeddings, layers and pooler")


@pytest.mark.parametrize("recipe", [one for one in members() if one.parent], ids=lambda one: one.name)
def test_the_difference_to_a_parent_is_short_and_complete(recipe, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = call("diff", recipe.name, recipe.parent)
    assert len(said.splitlines()) <= 52
    assert max(map(len, said.splitlines())) <= 80
    told = set(said.split())
    for row in difference(member(recipe.parent), recipe):
        last = row.path.rpartition(".")[2]
        names = {"name", "year", "paper", "title", "summary", "parent", "model_type"}
        assert last in names or any(word == last or word.endswith(f".{last}") for word in told), row.path


def test_what_changed_alike_in_every_stage_is_told_once_under_a_star() -> None:
    lines = call("diff", "wwm", "bert").splitlines()
    assert [line.split() for line in lines].count(["stages.*.tasks.0"]) == 1
    assert sum("corruption.select" in line for line in lines) == 1
    call("diff", "bert", "bert", "--set", "stages.*.tasks.0.corruption.select=WholeUnits()")


def test_a_part_can_be_typed() -> None:
    assert "num_copies: 1" in call("show", "roberta", "--set", "masking=StaticMasking(1)")
