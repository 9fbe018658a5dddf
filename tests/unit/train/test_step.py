"""One step: one division over everything, dropout from an address, and a score that forgets nothing."""

import math
from dataclasses import replace

import pytest
import torch
from little_course import ALONE, CPU, recipe, run_of, training

from unmask.config.optim import LAMB, Adamax, AdamW, Muon, StableAdamW
from unmask.train.batches.recipe_batches import RankSplit, RunPosition
from unmask.train.build_step import build_step_runner
from unmask.train.evaluate import eval_mode, evaluate
from unmask.train.optim.state import state_tensors
from unmask.train.schedule import StepBudget
from unmask.train.step import DeviceBatch, NotFinite, compute_metrics, isolated_rng, seed_dropout


def drawn(seed, *address):
    seed_dropout(seed, *address)
    return torch.rand(4).tolist()


def test_dropout_is_a_function_of_seed_step_process_and_micro_batch():
    with isolated_rng(CPU):
        assert drawn(1, 5, 0, 2) == drawn(1, 5, 0, 2)
        addresses = [(1, 5, 0, 2), (2, 5, 0, 2), (1, 6, 0, 2), (1, 5, 1, 2), (1, 5, 0, 3), (1, 5, 2, 0)]
        assert len({tuple(drawn(*address)) for address in addresses}) == len(addresses)


def test_own_draws_gives_the_draws_back():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with isolated_rng(CPU):
        seed_dropout(9, 9)
        torch.rand(100)
    assert torch.equal(torch.rand(2), expected)


def test_a_score_divides_sums_by_counts_and_leaves_out_what_was_not_asked():
    found = compute_metrics(["mlm", "next", "order"], [12.0, 2.0, 0.0], [3.0, 1.0, 0.0], [6.0, 4.0, 0.0])
    assert found.loss == {"mlm": 2.0, "next": 0.5}
    assert found.accuracy == {"mlm": 0.5, "next": 0.25}
    assert found.count == {"mlm": 6, "next": 4}


def prepared(optimizer=None, queue=0):
    made = training(StepBudget(4), recipe(batch=6))
    descent = replace(made.optim, optimizer=optimizer or made.optim.optimizer)
    worker = build_step_runner(made.model, descent, False, 0, run_of(max_in_flight=queue), ALONE)
    return worker, DeviceBatch.of(made.source.batch(RunPosition(0, 0.0), RankSplit(microbatch_tokens=32)), CPU)


def test_a_move_clips_steps_and_clears():
    worker, loaded = prepared()
    before = {name: tensor.clone() for name, tensor in worker.model.named_weights().items()}
    sums = worker.backward(loaded, loaded.step_batch.num_predictions(), 0)
    norm, *said = worker.apply_gradients(sums).read()
    assert norm > 0
    assert said == sums.flatten().tolist()
    assert all(parameter.grad is None for parameter in worker.model.parameters())
    assert any(not torch.equal(tensor, before[name]) for name, tensor in worker.model.named_weights().items())


@pytest.mark.parametrize("broken", ["sums", "gradient"])
def test_a_move_that_is_not_finite_moves_nothing(broken):
    worker, loaded = prepared()
    before = {name: tensor.clone() for name, tensor in worker.model.named_weights().items()}
    sums = worker.backward(loaded, loaded.step_batch.num_predictions(), 0)
    if broken == "sums":
        sums[0, 1] = float("inf")
    else:
        gradient = next(worker.model.parameters()).grad
        assert gradient is not None
        gradient[0] = float("nan")
    with pytest.raises(NotFinite):
        worker.apply_gradients(sums)
    assert all(torch.equal(tensor, before[name]) for name, tensor in worker.model.named_weights().items())


SKIP = [AdamW(1e-2), AdamW(1e-2, bias_correction=True), Muon(1e-2, AdamW(1e-2)), LAMB(1e-2), StableAdamW(1e-2)]


@pytest.mark.parametrize("optimizer", SKIP, ids=repr)
def test_after_a_queued_step_that_is_not_finite_nothing_moves_any_more(optimizer):
    worker, loaded = prepared(optimizer, queue=1)
    worker.apply_gradients(worker.backward(loaded, loaded.step_batch.num_predictions(), 0))
    names = dict(worker.model.named_parameters())
    before = {name: tensor.clone() for name, tensor in worker.model.named_weights().items()}
    memory = {name: tensor.clone() for name, tensor in state_tensors(worker.optimizer, names).items()}
    for step, broken in enumerate((True, False)):
        sums = worker.backward(loaded, loaded.step_batch.num_predictions(), step)
        for parameter in worker.model.parameters():
            parameter.grad.fill_(float("nan")) if broken else None
        said = worker.apply_gradients(sums).read()
        assert all(map(math.isfinite, said)) != broken
    assert all(torch.equal(tensor, before[name]) for name, tensor in worker.model.named_weights().items())
    found = state_tensors(worker.optimizer, names)
    assert all(torch.equal(tensor, memory[name]) for name, tensor in found.items())


def test_an_optimizer_that_cannot_skip_is_looked_at_at_once():
    worker, loaded = prepared(Adamax(1e-2), queue=2)
    assert worker.max_in_flight == 0
    sums = worker.backward(loaded, loaded.step_batch.num_predictions(), 0)
    sums[0, 1] = float("inf")
    with pytest.raises(NotFinite):
        worker.apply_gradients(sums)


def test_a_trial_draws_nothing_and_leaves_the_learner_as_it_was():
    made = training(StepBudget(4))
    made.model.train()
    torch.manual_seed(2)
    expected = torch.rand(2)
    torch.manual_seed(2)
    first, second = (evaluate(made.model, made.source.eval_batches(), run_of(), ALONE) for _ in range(2))
    assert first == second
    assert torch.equal(torch.rand(2), expected)
    assert made.model.training
    assert all(parameter.grad is None for parameter in made.model.parameters())


def test_still_restores_what_was_even_after_an_error():
    module = torch.nn.Dropout()
    with eval_mode(module):
        assert not module.training
        assert not torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), eval_mode(module):
        _ = 1 / 0
    assert module.training
    assert torch.is_grad_enabled()
