"""One step: one division over everything, dropout from an address, and a score that forgets nothing."""

import math
from dataclasses import replace

import pytest
import torch
from little_course import ALONE, CPU, recipe, run_of, training

from unmask.optimising import LAMB, Adamax, AdamW, Muon, StableAdamW
from unmask.train.budget import Steps
from unmask.train.course import Crew, Moment
from unmask.train.optim_state import state_tensors
from unmask.train.step import Loaded, NotFinite, own_draws, score, seed_dropout
from unmask.train.trial import judge, still
from unmask.train.worker import make_worker


def drawn(seed, *address):
    seed_dropout(seed, *address)
    return torch.rand(4).tolist()


def test_dropout_is_a_function_of_seed_step_process_and_micro_batch():
    with own_draws(CPU):
        assert drawn(1, 5, 0, 2) == drawn(1, 5, 0, 2)
        addresses = [(1, 5, 0, 2), (2, 5, 0, 2), (1, 6, 0, 2), (1, 5, 1, 2), (1, 5, 0, 3), (1, 5, 2, 0)]
        assert len({tuple(drawn(*address)) for address in addresses}) == len(addresses)


def test_own_draws_gives_the_draws_back():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with own_draws(CPU):
        seed_dropout(9, 9)
        torch.rand(100)
    assert torch.equal(torch.rand(2), expected)


def test_a_score_divides_sums_by_counts_and_leaves_out_what_was_not_asked():
    found = score(["mlm", "next", "order"], [12.0, 2.0, 0.0], [3.0, 1.0, 0.0], [6.0, 4.0, 0.0])
    assert found.loss == {"mlm": 2.0, "next": 0.5}
    assert found.right == {"mlm": 0.5, "next": 0.25}
    assert found.count == {"mlm": 6, "next": 4}


def prepared(optimiser=None, queue=0):
    made = training(Steps(4), recipe(batch=6))
    descent = replace(made.descent, optimiser=optimiser or made.descent.optimiser)
    worker = make_worker(made.learner, descent, False, 0, run_of(queue=queue), ALONE)
    return worker, Loaded.of(made.course.lesson(Moment(0, 0.0), Crew(micro=32)), CPU)


def test_a_move_clips_steps_and_clears():
    worker, loaded = prepared()
    before = {name: tensor.clone() for name, tensor in worker.learner.weights().items()}
    sums = worker.backward(loaded, loaded.lesson.asked(), 0)
    norm, *said = worker.move(sums).read()
    assert norm > 0
    assert said == sums.flatten().tolist()
    assert all(parameter.grad is None for parameter in worker.learner.parameters())
    assert any(not torch.equal(tensor, before[name]) for name, tensor in worker.learner.weights().items())


@pytest.mark.parametrize("broken", ["sums", "gradient"])
def test_a_move_that_is_not_finite_moves_nothing(broken):
    worker, loaded = prepared()
    before = {name: tensor.clone() for name, tensor in worker.learner.weights().items()}
    sums = worker.backward(loaded, loaded.lesson.asked(), 0)
    if broken == "sums":
        sums[0, 1] = float("inf")
    else:
        gradient = next(worker.learner.parameters()).grad
        assert gradient is not None
        gradient[0] = float("nan")
    with pytest.raises(NotFinite):
        worker.move(sums)
    assert all(torch.equal(tensor, before[name]) for name, tensor in worker.learner.weights().items())


SKIP = [AdamW(1e-2), AdamW(1e-2, correct_bias=True), Muon(1e-2, AdamW(1e-2)), LAMB(1e-2), StableAdamW(1e-2)]


@pytest.mark.parametrize("optimiser", SKIP, ids=repr)
def test_after_a_queued_step_that_is_not_finite_nothing_moves_any_more(optimiser):
    worker, loaded = prepared(optimiser, queue=1)
    worker.move(worker.backward(loaded, loaded.lesson.asked(), 0))
    names = dict(worker.learner.named_parameters())
    before = {name: tensor.clone() for name, tensor in worker.learner.weights().items()}
    memory = {name: tensor.clone() for name, tensor in state_tensors(worker.optimizer, names).items()}
    for step, broken in enumerate((True, False)):
        sums = worker.backward(loaded, loaded.lesson.asked(), step)
        for parameter in worker.learner.parameters():
            parameter.grad.fill_(float("nan")) if broken else None
        said = worker.move(sums).read()
        assert all(map(math.isfinite, said)) != broken
    assert all(torch.equal(tensor, before[name]) for name, tensor in worker.learner.weights().items())
    found = state_tensors(worker.optimizer, names)
    assert all(torch.equal(tensor, memory[name]) for name, tensor in found.items())


def test_an_optimiser_that_cannot_skip_is_looked_at_at_once():
    worker, loaded = prepared(Adamax(1e-2), queue=2)
    assert worker.queue == 0
    sums = worker.backward(loaded, loaded.lesson.asked(), 0)
    sums[0, 1] = float("inf")
    with pytest.raises(NotFinite):
        worker.move(sums)


def test_a_trial_draws_nothing_and_leaves_the_learner_as_it_was():
    made = training(Steps(4))
    made.learner.train()
    torch.manual_seed(2)
    expected = torch.rand(2)
    torch.manual_seed(2)
    first, second = (judge(made.learner, made.course.trial(), run_of(), ALONE) for _ in range(2))
    assert first == second
    assert torch.equal(torch.rand(2), expected)
    assert made.learner.training
    assert all(parameter.grad is None for parameter in made.learner.parameters())


def test_still_restores_what_was_even_after_an_error():
    module = torch.nn.Dropout()
    with still(module):
        assert not module.training
        assert not torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), still(module):
        _ = 1 / 0
    assert module.training
    assert torch.is_grad_enabled()
