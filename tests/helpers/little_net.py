"""A small network with everything that groups of parameters must cope with, and gradients for five steps."""

import torch
from torch import nn

from unmask.config.optim import LAMB, AdamW, Muon, StableAdamW
from unmask.train.optim.param_groups import ParamGroup, group_parameters
from unmask.train.step import set_lr

STEPS = 5
MUON = Muon(0.02, AdamW(1e-2))
EVERY = [
    AdamW(1e-2),
    AdamW(1e-2, bias_correction=True),
    LAMB(1e-2),
    LAMB(1e-2, bias_correction=True),
    StableAdamW(1e-2),
    StableAdamW(1e-2, bias_correction=False),
    MUON,
]


class Little(nn.Module):
    """An embedding, two blocks that share a linear layer, and a head tied to the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(7, 4)
        shared = nn.Linear(4, 4)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(4), shared, nn.Linear(4, 4)) for _ in range(2))
        self.head = nn.Linear(4, 7)
        self.head.weight = self.token.weight

    def forward(self, ids):
        x = self.token(ids)
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(x)


def little(dtype: torch.dtype = torch.float64) -> Little:
    generator = torch.Generator().manual_seed(3)
    net = Little().to(dtype)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=dtype) * 0.5)
        net.layers[1][2].weight.zero_()  # LAMB: a norm of 0
    return net


def groups_of(net: Little) -> tuple[ParamGroup, ...]:
    return group_parameters(net, net.layers)


def gradients(net: nn.Module) -> list[dict[str, torch.Tensor]]:
    """Five steps of gradients; the last is a burst that StableAdamW has to clip."""
    generator = torch.Generator().manual_seed(5)
    size = (1.0, 0.1, 2.0, 0.5, 30.0)
    return [
        {n: by * torch.randn(p.shape, generator=generator, dtype=p.dtype) for n, p in net.named_parameters()}
        for by in size
    ]


def run(net: nn.Module, optimizer: torch.optim.Optimizer, steps: list[dict[str, torch.Tensor]], first: int = 0) -> None:
    for number, step in enumerate(steps, first):
        for name, parameter in net.named_parameters():
            parameter.grad = step[name].clone()
        set_lr(optimizer, (number + 1) / STEPS)
        optimizer.step()
