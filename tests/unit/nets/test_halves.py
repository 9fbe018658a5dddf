"""Weights that are cast all at once: the numbers of autocast, gradients for the weights, and nothing left behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unmask.nets.halves import with_halves


class Shared(nn.Module):
    """A layer that is used twice, under two names, and one that is used once."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.again = nn.Linear(6, 6)
        self.last, self.unused = nn.Linear(6, 2), nn.Linear(6, 2)

    def forward(self, x_TD: torch.Tensor) -> torch.Tensor:
        return self.last(self.again(self.first(x_TD).relu()).relu())


def gradients(halves: bool) -> tuple[torch.Tensor, dict[str, torch.Tensor | None]]:
    torch.manual_seed(0)
    network, x_TD = Shared(), torch.randn(5, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        said = with_halves(network, torch.bfloat16, x_TD) if halves else network(x_TD)
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
        with_halves(network, torch.bfloat16, torch.randn(5, 7))
    assert all(isinstance(one, nn.Parameter) for one in network.parameters())
