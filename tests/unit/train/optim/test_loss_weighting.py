"""Weights that are learned: where they begin, what they cost, and that nothing else depends on them."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from little_course import ALONE, CPU, corpus, recipe, run_of

from unmask.config.optim import LAMB, AdamW, Linear, LossWeighting, Muon, OptimConfig, OptimizerConfig, StableAdamW
from unmask.core.errors import RecipeError
from unmask.objectives.heads.common import LossSum
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import NSP
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RankSplit, RecipeBatches, RunPosition, require_trainable
from unmask.train.build_step import TrainingSpec, build_step_runner
from unmask.train.loop import train
from unmask.train.multi_head_model import FixedWeights, MultiHeadModel, UncertaintyWeights, build_loss_weighting
from unmask.train.rundir.checkpoint import MODEL, OPTIMIZER, list_checkpoints, read_tensors
from unmask.train.rundir.run_writer import RECORD, LogLine, read_record
from unmask.train.schedule import StepBudget
from unmask.train.step import DeviceBatch

HEAVY = replace(NSP, weight=5.0)
BOTH = (MLM(), HEAVY)
NAMES = ("balance.moved.mlm", "balance.moved.next")


def learned(optimizer: OptimizerConfig = AdamW(1e-2), balance: LossWeighting = LossWeighting.LEARNED) -> Recipe:  # noqa: B008
    made = recipe(batch=8)
    (task,) = made.tasks
    stage = replace(made.stages[0], tasks=(replace(task, objectives=BOTH),))
    dry = replace(made.network, dropout=0.0, attention_dropout=0.0)
    return replace(made, stages=(stage,), network=dry, loss_weighting=balance, optim=OptimConfig(optimizer, Linear()))


def training(made: Recipe, steps: int = 6) -> TrainingSpec:
    text = corpus()
    learner = MultiHeadModel(
        made.network, require_trainable(made.objectives), text.vocab.size, made.max_length, made.loss_weighting
    )
    learner.init_weights(1)
    course = RecipeBatches.of(made, text, 1, heldout_fraction=0.1)
    return TrainingSpec(model=learner, source=course, optim=made.optim, budget=StepBudget(steps), seed=1)


def gradients(
    made: TrainingSpec, micro: int = 1 << 20
) -> tuple[torch.Tensor, dict[str, torch.Tensor], tuple[int, ...]]:
    worker = build_step_runner(made.model, made.optim, False, 1, run_of(microbatch_tokens=micro), ALONE)
    lesson = made.source.batch(RunPosition(0, 0.0), RankSplit(microbatch_tokens=micro))
    sums = worker.backward(DeviceBatch.of(lesson, CPU), lesson.num_predictions(), 0)
    return (
        sums,
        {name: p.grad for name, p in made.model.named_parameters() if p.grad is not None},
        lesson.num_predictions(),
    )


def test_it_begins_with_the_weights_of_the_objectives() -> None:
    balance = build_loss_weighting(LossWeighting.LEARNED, BOTH)
    assert isinstance(balance, UncertaintyWeights)
    assert [float(one.detach()) for one in balance.weights(BOTH)] == [1.0, 5.0]
    assert float(balance.regularizer(BOTH).detach()) == pytest.approx(-math.log(5) / 2)
    assert balance.current_weights(BOTH).tolist() == [1.0, 5.0]


def test_fixed_weights_have_no_parameters_and_nothing_to_tell() -> None:
    balance = build_loss_weighting(LossWeighting.FIXED, BOTH)
    assert isinstance(balance, FixedWeights)
    assert list(balance.parameters()) == []
    assert balance.weights(BOTH) == [1.0, 5.0]
    assert balance.current_weights(BOTH).tolist() == []


def test_an_objective_without_weight_cannot_begin() -> None:
    with pytest.raises(RecipeError, match=r"must be above 0; found 0 for 'mlm'. Give it a weight"):
        build_loss_weighting(LossWeighting.LEARNED, (MLM(weight=0.0),))


def test_terms_stay_what_they_are() -> None:
    balance = UncertaintyWeights(BOTH)
    terms = tuple(LossSum(torch.tensor(total), torch.tensor(1), 2) for total in (3.0, 4.0))
    assert [float(term.total.detach()) for term in balance(terms, BOTH)] == [3.0, 4.0]


def test_gradients_are_those_of_the_written_out_loss() -> None:
    """The network's are those of fixed weights; that of s is 1/2 - exp(-s) * loss."""
    sums, fixed, asked = gradients(training(learned(balance=LossWeighting.FIXED)))
    _, found, _ = gradients(training(learned()))
    assert set(found) == {*fixed, *NAMES}
    for name, gradient in fixed.items():
        assert torch.equal(gradient, found[name]), name
    for name, weight, total, count in zip(NAMES, (1.0, 5.0), sums[0].tolist(), asked, strict=True):
        assert float(found[name]) == pytest.approx(0.5 - weight * total / count, rel=1e-5)


@pytest.mark.parametrize("micro", [16, 48])
def test_the_price_is_paid_once_whatever_a_step_is_cut_into(micro: int) -> None:
    _, whole, _ = gradients(training(learned()))
    _, split, _ = gradients(training(learned()), micro)
    for name in NAMES:
        assert float(split[name]) == pytest.approx(float(whole[name]), rel=1e-4)


def go(made: Recipe, folder: Path, stop: int = 99) -> list[dict[str, Any]]:
    def listen(line: LogLine) -> None:
        if line["kind"] == "step" and line["step"] == stop:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        train(training(made), run_of(trials=3), ALONE, folder, [listen])
    return [line for line in read_record(folder / RECORD) if line["kind"] == "step"]


@pytest.mark.parametrize(
    "optimizer", [AdamW(1e-2), LAMB(1e-2), StableAdamW(1e-2), Muon(1e-2, AdamW(1e-2))], ids=lambda o: type(o).__name__
)
def test_weights_move_are_recorded_and_survive_a_resume(optimizer: OptimizerConfig, tmp_path: Path) -> None:
    made = learned(optimizer)
    straight = go(made, tmp_path / "straight")
    go(made, tmp_path / "stopped", stop=3)
    stopped = go(made, tmp_path / "stopped")
    assert [line["weight"] for line in stopped] == [line["weight"] for line in straight]
    assert straight[0]["weight"] == {"mlm": 1.0, "next": 5.0}
    # Both losses are far above 1 / (2 * weight), so both weights fall.
    assert straight[-1]["weight"]["mlm"] < 1.0
    assert straight[-1]["weight"]["next"] < 5.0
    one, other = (
        read_tensors(list_checkpoints(tmp_path / name / "checkpoints")[-1], MODEL) for name in ("straight", "stopped")
    )
    assert set(NAMES) <= set(one)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_learned_weight_does_not_decay(tmp_path: Path) -> None:
    made = training(learned(AdamW(1e-2, weight_decay=0.5)))
    worker = build_step_runner(made.model, made.optim, False, 1, run_of(), ALONE)
    moved = {made.model.get_parameter(name) for name in NAMES}
    groups = [group for group in worker.optimizer.param_groups if moved & set(group["params"])]
    assert [group["weight_decay"] for group in groups] == [0.0]
    assert groups[0]["peak"] == 1e-2


def test_the_gradient_of_a_weight_is_neither_told_nor_clipped_with_the_network(tmp_path: Path) -> None:
    made = training(learned())
    worker = build_step_runner(made.model, made.optim, False, 1, run_of(), ALONE)
    network = list(worker.model.network_parameters())
    assert len(network) == len(list(worker.model.parameters())) - len(NAMES)
    for parameter in worker.model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for name in NAMES:
        worker.model.get_parameter(name).grad.fill_(30.0)
    assert worker.apply_gradients(torch.zeros(2, 2)).read()[0] == 0.0


def test_fixed_weights_say_nothing_in_the_record(tmp_path: Path) -> None:
    lines = go(learned(balance=LossWeighting.FIXED), tmp_path)
    assert not any("weight" in line for line in lines)
    saved = list_checkpoints(tmp_path / "checkpoints")[-1]
    assert not any("balance" in name for part in (MODEL, OPTIMIZER) for name in read_tensors(saved, part))
