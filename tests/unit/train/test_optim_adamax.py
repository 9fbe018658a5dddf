"""Adamax against a readable loop; its state is there from the start and comes back."""

import numpy as np
import pytest
import torch
from little_net import STEPS, gradients, groups_of, little, run

from unmask.config.optim import Adamax, Linear, OptimConfig, WarmupFraction
from unmask.core import codec
from unmask.core.errors import RecipeError
from unmask.train.optim.build import build_optimizer
from unmask.train.optim.state import load_state_tensors, state_tensors

SPEC = Adamax(1e-2)


def loop(weight: np.ndarray, steps: list[np.ndarray]) -> np.ndarray:
    """One tensor, number by number."""
    w = [float(x) for x in weight.ravel()]
    m, u = [0.0] * len(w), [0.0] * len(w)
    for t, gradient in enumerate(steps, 1):
        rate = SPEC.lr * t / STEPS
        for i, g in enumerate(float(x) for x in gradient.ravel()):
            m[i] = SPEC.betas[0] * m[i] + (1 - SPEC.betas[0]) * g
            u[i] = max(SPEC.betas[1] * u[i], abs(g) + SPEC.eps)
            w[i] -= rate * m[i] / (1 - SPEC.betas[0] ** t) / u[i]
    return np.array(w).reshape(weight.shape)


def test_five_steps_equal_a_readable_loop():
    net = little()
    steps = gradients(net)
    wanted = {
        name: loop(parameter.detach().numpy().copy(), [step[name].numpy() for step in steps])
        for name, parameter in net.named_parameters()
    }
    run(net, build_optimizer(SPEC, groups_of(net)), steps)
    for name, parameter in net.named_parameters():
        np.testing.assert_allclose(parameter.detach().numpy(), wanted[name], rtol=1e-6, atol=1e-12, err_msg=name)


def test_it_goes_on_from_its_saved_state():
    whole, first, second = little(), little(), little()
    steps = gradients(whole)
    run(whole, build_optimizer(SPEC, groups_of(whole)), steps)
    before = build_optimizer(SPEC, groups_of(first))
    run(first, before, steps[:2])
    second.load_state_dict(first.state_dict())
    after = build_optimizer(SPEC, groups_of(second))
    load_state_tensors(after, dict(second.named_parameters()), state_tensors(before, dict(first.named_parameters())))
    run(second, after, steps[2:], first=2)
    for one, other in zip(whole.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_parameter_without_a_gradient_stays():
    net = little()
    before = net.token.weight.detach().clone()
    net.layers[0](torch.ones(1, 4, dtype=torch.float64)).square().sum().backward()
    build_optimizer(SPEC, groups_of(net)).step()
    assert torch.equal(net.token.weight, before)


def test_it_is_a_value_and_refuses_what_cannot_work():
    descent = OptimConfig(SPEC, Linear(WarmupFraction(0.1)))
    assert codec.decode(codec.encode(descent), OptimConfig) == descent
    for wrong in (lambda: Adamax(0.0), lambda: Adamax(1e-3, betas=(1.0, 0.9)), lambda: Adamax(1e-3, eps=0.0)):
        with pytest.raises(RecipeError, match=r"Adamax needs .*; found .*\."):
            wrong()
