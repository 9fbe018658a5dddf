"""`unmask show` and `unmask diff`: every row that is printed is a path that `--set` takes."""

from __future__ import annotations

import pytest
from typer import Typer
from typer.testing import CliRunner

from unmask.cli.family import diff, show
from unmask.codec import difference, override
from unmask.errors import RecipeError
from unmask.family import member

APP = Typer()
for command in (show, diff):
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
    assert "stages.0.tasks.0.corrupt.select.run" in paths
    assert "stages.0.length" in paths
    assert set(paths) <= {row.path for row in difference(member("wwm"), member("macbert"))}
    assert override(member("wwm"), "stages.0.length", "64").stages[0].length == 64


def test_a_stage_that_is_not_there_is_told_briefly() -> None:
    lines = " ".join(call("diff", "roberta", "bert").split())
    assert "stages.1 Stage(length=512, nothing batch=256, share=0.1, ...)" in lines


def test_what_does_not_differ_is_said_to_be_the_same() -> None:
    assert call("diff", "bert", "bert") == "bert and bert are the same.\n"


def test_a_change_applies_to_the_first_member() -> None:
    lines = call("diff", "bert", "bert", "--set", "stages.1.length=256").splitlines()
    assert [line.split() for line in lines] == [["bert", "bert", "(changed)"], ["stages.1"], ["length", "512", "256"]]
    with pytest.raises(RecipeError, match="needs a whole number, found 'long'"):
        call("diff", "bert", "bert", "--set", "stages.1.length=long")


def test_numbers_are_shown_with_four_digits() -> None:
    assert "run: (0.2241, 0.1792," in call("show", "spanbert")
