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

from unmask.errors import RecipeError
from unmask.objectives.heads import Term
from unmask.objectives.mlm import MLM
from unmask.objectives.pair import NSP
from unmask.optimising import LAMB, AdamW, Balance, Descent, Linear, Muon, Optimiser, StableAdamW
from unmask.tasks import Recipe
from unmask.train.balance import Fixed, Learned, make_balance
from unmask.train.budget import Steps
from unmask.train.checkpoint import MODEL, OPTIMISER, checkpoints, read_tensors
from unmask.train.course import Crew, Moment
from unmask.train.learner import Learner
from unmask.train.lessons import Lessons, learnable
from unmask.train.loop import train
from unmask.train.record import RECORD, Line, read_record
from unmask.train.step import Loaded
from unmask.train.training import Training
from unmask.train.worker import make_worker

HEAVY = replace(NSP, weight=5.0)
BOTH = (MLM(), HEAVY)
NAMES = ("balance.moved.mlm", "balance.moved.next")


def learned(optimiser: Optimiser = AdamW(1e-2), balance: Balance = Balance.LEARNED) -> Recipe:  # noqa: B008
    made = recipe(batch=8)
    (task,) = made.tasks
    stage = replace(made.stages[0], tasks=(replace(task, learns=BOTH),))
    dry = replace(made.trunk, dropout=0.0, attention_dropout=0.0)
    return replace(made, stages=(stage,), trunk=dry, balance=balance, descent=Descent(optimiser, Linear()))


def training(made: Recipe, steps: int = 6) -> Training:
    text = corpus()
    learner = Learner(made.trunk, learnable(made.objectives), text.vocab.size, made.length, made.balance)
    learner.draw(1)
    course = Lessons.of(made, text, 1, held_out=0.1)
    return Training(learner=learner, course=course, descent=made.descent, budget=Steps(steps), seed=1)


def gradients(made: Training, micro: int = 1 << 20) -> tuple[torch.Tensor, dict[str, torch.Tensor], tuple[int, ...]]:
    worker = make_worker(made.learner, made.descent, False, 1, run_of(micro=micro), ALONE)
    lesson = made.course.lesson(Moment(0, 0.0), Crew(micro=micro))
    sums = worker.backward(Loaded.of(lesson, CPU), lesson.asked(), 0)
    return sums, {name: p.grad for name, p in made.learner.named_parameters() if p.grad is not None}, lesson.asked()


def test_it_begins_with_the_weights_of_the_objectives() -> None:
    balance = make_balance(Balance.LEARNED, BOTH)
    assert isinstance(balance, Learned)
    assert [float(one.detach()) for one in balance.weights(BOTH)] == [1.0, 5.0]
    assert float(balance.price(BOTH).detach()) == pytest.approx(-math.log(5) / 2)
    assert balance.learned(BOTH).tolist() == [1.0, 5.0]


def test_fixed_weights_have_no_parameters_and_nothing_to_tell() -> None:
    balance = make_balance(Balance.FIXED, BOTH)
    assert isinstance(balance, Fixed)
    assert list(balance.parameters()) == []
    assert balance.weights(BOTH) == [1.0, 5.0]
    assert balance.learned(BOTH).tolist() == []


def test_an_objective_without_weight_cannot_begin() -> None:
    with pytest.raises(RecipeError, match=r"must be above 0; found 0 for 'mlm'. Give it a weight"):
        make_balance(Balance.LEARNED, (MLM(weight=0.0),))


def test_terms_stay_what_they_are() -> None:
    balance = Learned(BOTH)
    terms = tuple(Term(torch.tensor(total), torch.tensor(1), 2) for total in (3.0, 4.0))
    assert [float(term.total.detach()) for term in balance(terms, BOTH)] == [3.0, 4.0]


def test_gradients_are_those_of_the_written_out_loss() -> None:
    """The network's are those of fixed weights; that of s is 1/2 - exp(-s) * loss."""
    sums, fixed, asked = gradients(training(learned(balance=Balance.FIXED)))
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
    def listen(line: Line) -> None:
        if line["kind"] == "step" and line["step"] == stop:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        train(training(made), run_of(trials=3), ALONE, folder, [listen])
    return [line for line in read_record(folder / RECORD) if line["kind"] == "step"]


@pytest.mark.parametrize(
    "optimiser", [AdamW(1e-2), LAMB(1e-2), StableAdamW(1e-2), Muon(1e-2, AdamW(1e-2))], ids=lambda o: type(o).__name__
)
def test_weights_move_are_recorded_and_survive_a_resume(optimiser: Optimiser, tmp_path: Path) -> None:
    made = learned(optimiser)
    straight = go(made, tmp_path / "straight")
    go(made, tmp_path / "stopped", stop=3)
    stopped = go(made, tmp_path / "stopped")
    assert [line["weight"] for line in stopped] == [line["weight"] for line in straight]
    assert straight[0]["weight"] == {"mlm": 1.0, "next": 5.0}
    # Both losses are far above 1 / (2 * weight), so both weights fall.
    assert straight[-1]["weight"]["mlm"] < 1.0
    assert straight[-1]["weight"]["next"] < 5.0
    one, other = (
        read_tensors(checkpoints(tmp_path / name / "checkpoints")[-1], MODEL) for name in ("straight", "stopped")
    )
    assert set(NAMES) <= set(one)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_learned_weight_does_not_decay(tmp_path: Path) -> None:
    made = training(learned(AdamW(1e-2, decay=0.5)))
    worker = make_worker(made.learner, made.descent, False, 1, run_of(), ALONE)
    moved = {made.learner.get_parameter(name) for name in NAMES}
    groups = [group for group in worker.optimizer.param_groups if moved & set(group["params"])]
    assert [group["weight_decay"] for group in groups] == [0.0]
    assert groups[0]["peak"] == 1e-2


def test_the_gradient_of_a_weight_is_neither_told_nor_clipped_with_the_network(tmp_path: Path) -> None:
    made = training(learned())
    worker = make_worker(made.learner, made.descent, False, 1, run_of(), ALONE)
    network = list(worker.learner.network_parameters())
    assert len(network) == len(list(worker.learner.parameters())) - len(NAMES)
    for parameter in worker.learner.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for name in NAMES:
        worker.learner.get_parameter(name).grad.fill_(30.0)
    assert worker.move(torch.zeros(2, 2)).read()[0] == 0.0


def test_fixed_weights_say_nothing_in_the_record(tmp_path: Path) -> None:
    lines = go(learned(balance=Balance.FIXED), tmp_path)
    assert not any("weight" in line for line in lines)
    saved = checkpoints(tmp_path / "checkpoints")[-1]
    assert not any("balance" in name for part in (MODEL, OPTIMISER) for name in read_tensors(saved, part))
