"""A wish as parts: what is refused before any work, and what a folder knows its run by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from unmask.api.prepare import run_prepare as prepare
from unmask.api.prepare_options import PrepareOptions
from unmask.api.pretrain_setup import PretrainRequest, PretrainSetup
from unmask.config.optim import AdamW, Muon
from unmask.core.errors import InputError, RecipeError
from unmask.members import members
from unmask.train.rundir.folder import check_same_run, read_run, start_or_resume
from unmask.train.schedule import StepBudget, TimeBudget, TokenBudget

WISH = PretrainRequest(
    member="bert",
    size="tiny",
    changes=(),
    data=Path("data"),
    heldout_fraction=0.1,
    steps=10,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wished")
    lines = (f"今天是第{number}天。\n天气很好，我们去了公园。\n\n" for number in range(60))
    (folder / "news.txt").write_text("".join(lines), encoding="utf-8")
    prepare([str(folder / "news.txt")], folder / "data", PrepareOptions(vocab_size=120), 1)
    return folder


@pytest.fixture
def here(corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    return corpus


def parts(**changes):
    return PretrainSetup(replace(WISH, **changes))


def test_one_budget_and_no_more():
    assert parts().budget == StepBudget(10)
    assert parts(steps=None, tokens=7).budget == TokenBudget(7)
    assert parts(steps=None, hours=0.5).budget == TimeBudget(0.5)
    with pytest.raises(RecipeError, match="found none of them"):
        _ = parts(steps=None).budget
    with pytest.raises(RecipeError, match="found 10 steps and 7 tokens"):
        _ = parts(tokens=7).budget


def test_batch_and_rate_reach_every_stage_and_a_change_goes_before_them():
    recipe = parts(batch_size=8, lr=1e-3, changes=("stages.1.batch_size=4",)).recipe
    assert [stage.batch_size for stage in recipe.stages] == [8, 4]
    assert recipe.optim.optimizer.lr == 1e-3
    published = parts().recipe
    assert len({stage.batch_size for stage in published.stages} - {4, 8}) == 1


def test_a_short_run_has_its_own_numbers_and_a_wish_goes_before_them():
    published, recipe = parts().recipe, parts(preset="short").recipe
    assert [(stage.max_length, stage.batch_size, stage.fraction) for stage in recipe.stages] == [
        (32, 64, 0.9),
        (128, 16, 0.1),
    ]
    assert [stage.tasks for stage in recipe.stages] == [stage.tasks for stage in published.stages]
    muon = recipe.optim.optimizer
    assert isinstance(muon, Muon)
    assert (muon.lr, muon.adamw) == (2e-3, AdamW(5e-4, betas=(0.9, 0.98), bias_correction=True))
    assert recipe.optim.schedule.warmup.fraction == 0.05
    assert recipe.network == replace(published.network, dropout=0.0, attention_dropout=0.0)
    wished = parts(
        preset="short", batch_size=8, lr=1e-3, changes=("network.dropout=0.2", "stages.0.max_length=64")
    ).recipe
    assert [(stage.max_length, stage.batch_size) for stage in wished.stages] == [(64, 8), (128, 8)]
    assert (wished.optim.optimizer.lr, wished.network.dropout) == (1e-3, 0.2)


@pytest.mark.parametrize("name", [recipe.name for recipe in members()])
def test_every_member_has_a_short_run_with_all_that_it_learns(name):
    published, recipe = parts(member=name, size="").recipe, parts(member=name, size="", preset="short").recipe
    assert recipe.objectives == published.objectives
    assert [stage.max_length for stage in recipe.stages] == [32] * (len(recipe.stages) - 1) + [128]
    assert sum(stage.fraction for stage in recipe.stages) == pytest.approx(1)
    assert {stage.max_length * stage.batch_size for stage in recipe.stages} == {2048}


def test_a_probe_stands_in_the_middle_of_each_stage():
    probes = parts().cost_probes()
    assert [(probe.position.progress, probe.fraction) for probe in probes] == [
        (pytest.approx(0.45), 0.9),
        (pytest.approx(0.95), 0.1),
    ]


def test_a_run_knows_its_corpus_from_anywhere_and_by_any_name(here, monkeypatch, tmp_path):
    described = parts().description()
    assert described["corpus"]["folder"] == str(here / "data")
    start_or_resume(tmp_path, described)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(here / "data")
    check_same_run(tmp_path, parts(data=Path("link")).description())
    assert read_run(tmp_path) == described


def test_another_run_is_refused_with_the_advice_of_whoever_asks(here, tmp_path):
    start_or_resume(tmp_path, parts().description())
    other = parts(seed=1).description()
    with pytest.raises(
        InputError, match=r"seed was 0 and is now 1\. .*for something new, choose a new folder for --out\."
    ):
        check_same_run(tmp_path, other)
    with pytest.raises(InputError, match=r"for something new, take a walk\."):
        check_same_run(tmp_path, other, "take a walk")


def test_a_change_of_tasks_holds_for_every_part_of_a_short_run():
    """A short run parts the only stage of a member in two; a path of the published recipe means both."""
    change = ("stages.0.tasks.0.objectives.0.width=0.5", "stages.1.max_length=64")
    found = parts(member="electra", preset="short", changes=change).recipe
    assert [stage.max_length for stage in found.stages] == [32, 64]
    assert [stage.tasks[0].objectives[0].width for stage in found.stages] == [0.5, 0.5]
