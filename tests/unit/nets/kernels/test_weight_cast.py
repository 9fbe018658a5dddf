"""Weights that are cast all at once: the numbers of autocast, gradients for the weights, and nothing left behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unmask.nets.kernels.dispatch import FusableModule
from unmask.nets.kernels.weight_cast import call_with_cast_weights

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Full(nn.Module):
    """A part without kernels, which computes in full numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x_TD: torch.Tensor) -> torch.Tensor:
        with torch.autocast(DEVICE, enabled=False):
            return self.layer(x_TD.float())


class Shared(FusableModule):
    """A layer that is used twice, under two names, and one that is used once, whose bias its product adds."""

    biased_layers = ("last",)

    def __init__(self) -> None:
        super().__init__()
        self.first = self.again = nn.Linear(6, 6)
        self.last, self.unused = nn.Linear(6, 2), nn.Linear(6, 2)
        self.full = Full()

    def forward(self, x_TD: torch.Tensor) -> torch.Tensor:
        return self.full(self.last(self.again(self.first(x_TD).relu()).relu()))


def gradients(halves: bool) -> tuple[torch.Tensor, dict[str, torch.Tensor | None]]:
    torch.manual_seed(0)
    network, x_TD = Shared().to(DEVICE), torch.randn(5, 6).to(DEVICE)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        said = call_with_cast_weights(network, torch.bfloat16, x_TD) if halves else network(x_TD)
    said.float().square().sum().backward()
    assert all(isinstance(one, nn.Parameter) and one.dtype is torch.float32 for one in network.parameters())
    return said, {name: parameter.grad for name, parameter in network.named_parameters()}


def test_they_are_those_of_autocast_to_the_last_digit() -> None:
    (mine, ours), (said, theirs) = gradients(True), gradients(False)
    assert torch.equal(mine, said)
    assert ours.keys() == theirs.keys()
    assert ours["unused.weight"] is None
    for name in (name for name, gradient in theirs.items() if gradient is not None):
        assert ours[name].dtype is torch.float32
        assert torch.equal(ours[name], theirs[name]), name


def test_the_weights_are_back_after_an_error() -> None:
    network = Shared()
    with pytest.raises(RuntimeError):
        call_with_cast_weights(network, torch.bfloat16, torch.randn(5, 7))
    assert all(isinstance(one, nn.Parameter) for one in network.parameters())


def test_a_bias_is_cast_only_where_its_product_adds_it() -> None:
    """Kernels add the others to the product themselves, in float32."""
    network, seen = Shared(), {}
    for name in ("first", "last"):
        layer = getattr(network, name)
        layer.register_forward_hook(
            lambda made, *_, name=name: seen.update({name: (made.weight.dtype, made.bias.dtype)})
        )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        call_with_cast_weights(network, torch.bfloat16, torch.randn(5, 6))
    assert seen == {"first": (torch.bfloat16, torch.float32), "last": (torch.bfloat16, torch.bfloat16)}


def test_no_gradient_is_asked_for_below_what_rests() -> None:
    network, seen = Shared(), []
    network.first.requires_grad_(False)
    network.last.register_forward_pre_hook(lambda _, given: seen.append(given[0].requires_grad))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        said = call_with_cast_weights(network, torch.bfloat16, torch.randn(5, 6))
    assert seen == [False]
    assert said.requires_grad
