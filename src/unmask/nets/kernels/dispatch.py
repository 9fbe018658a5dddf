"""The switch to kernels of our own, and what they do as functions of tensors: the work around the matrix products.

What arrives: states, and the parameters of a part. What leaves: states in the numbers of the products, with gradients.
What never happens here: a choice that depends on numbers. `served` looks at where a tensor lies and of what type it is,
`use_kernels` sets a mark on the parts of a network once; so a step that was recorded is the step that is repeated.

The plain code beside each call says what is computed; tests hold the kernels to it. Norms, sums and losses are float32
inside. Triton is imported when a kernel is first wanted, and need not be there.

Shapes: T tokens, D width, F inner width.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds
from unmask.nets.layers.dropout import apply_dropout

_KERNEL_DTYPES = frozenset({torch.bfloat16, torch.float16, torch.float32})


class FusableModule(nn.Module):
    """A part of a network that has kernels of its own; plain until it is told otherwise."""

    fused = False
    biased_layers: ClassVar[tuple[str, ...]] = ()
    """The names of linear layers whose product always adds the bias; that of others a kernel may add to it."""

    def set_fused(self, on: bool) -> None:
        """Take the kernels from now on, wherever a tensor can be served, or the plain code."""
        self.fused = on


class LinearDeferredBias(nn.Linear):
    """A linear layer that leaves its bias to whoever reads what comes out of it."""

    def forward(self, x_TD: Tensor) -> Tensor:
        """The product alone."""
        return F.linear(x_TD, self.weight)


def use_kernels(network: nn.Module, on: bool = True) -> None:
    """Let every part of a network take kernels where it has some, or let none do so."""
    for part in [one for one in network.modules() if isinstance(one, FusableModule)]:
        part.set_fused(on)


@cache
def triton_available() -> bool:
    """Whether Triton can be imported."""
    return find_spec("triton") is not None


@cache
def kernel_failure(device: torch.device) -> str:
    """Why a kernel cannot run on a device, though Triton is there: no compiler, say; empty where one did run."""
    x_TD = torch.ones(1, 16, device=device)
    try:
        with torch.no_grad():
            bias_dropout_residual_norm(x_TD, x_TD, x_TD[0], nn.LayerNorm(16, device=device), 0.0).sum().item()
    except Exception as error:  # whatever Triton, a compiler or a driver has to say
        return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
    return ""


def kernel_supports(x: Tensor) -> bool:
    """Whether kernels can take this tensor: on a GPU, or anywhere while Triton interprets them."""
    return x.dtype in _KERNEL_DTYPES and x.numel() > 0 and triton_available() and (x.is_cuda or _interpreted())


def compute_dtype(x: Tensor) -> torch.dtype:
    """The type in which products are computed from a tensor: its own, or that of autocast."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def change_linear_class(layer: nn.Linear, linear_class: type[nn.Linear]) -> nn.Linear:
    """The same parameters in a linear layer of another kind."""
    if type(layer) is linear_class:
        return layer
    made = linear_class(layer.in_features, layer.out_features, device="meta")
    made.weight, made.bias = layer.weight, layer.bias
    return made.train(layer.training)


def bias_dropout_residual_norm(
    x_TD: Tensor, y_TD: Tensor, bias_D: Tensor, norm: nn.LayerNorm, rate: float, seeds: DropoutSeeds = PER_CALL_SEEDS
) -> Tensor:
    """norm(x + drop(y + bias)): the end of a post-norm branch. `y` is a product, and the states leave in its type."""
    if not kernel_supports(x_TD):
        summed_TD: Tensor = norm(x_TD + apply_dropout(y_TD + bias_D, rate))
        return summed_TD
    from unmask.nets.kernels.norm import BiasDropoutResidualNorm

    made: tuple[Tensor, Tensor] = BiasDropoutResidualNorm.apply(  # type: ignore[no-untyped-call]
        residual_input(x_TD), y_TD, bias_D, norm.weight, norm.bias, next_seed(seeds, y_TD, rate), rate, norm.eps
    )
    return split_residual(*made)


def bias_gelu(y_TF: Tensor, bias_F: Tensor, tanh: bool) -> Tensor:
    """gelu(y + bias), exact or with its tanh."""
    if not kernel_supports(y_TF):
        return F.gelu(y_TF + bias_F, approximate="tanh" if tanh else "none")
    from unmask.nets.kernels.gelu import BiasGelu

    bent_TF: Tensor = BiasGelu.apply(y_TF, bias_F, tanh)  # type: ignore[no-untyped-call]
    return bent_TF


def embed_norm(
    ids: tuple[Tensor, Tensor, Tensor],
    tables: tuple[nn.Module, nn.Module, nn.Module | None],
    norm: nn.Module,
    rate: float,
    seeds: DropoutSeeds = PER_CALL_SEEDS,
) -> Tensor:
    """drop(norm(token + position + segment)), for tables that are served: the beginning of a post-norm network."""
    from unmask.nets.kernels.norm import EmbedNorm

    weights = [None if table is None else table.weight for table in tables]
    seed = next_seed(seeds, ids[0], rate)
    made: tuple[Tensor, Tensor] = EmbedNorm.apply(  # type: ignore[no-untyped-call]
        tuple(one.contiguous() for one in ids), seed, rate, norm.eps, *weights, norm.weight, norm.bias
    )
    return split_residual(*made)


def split_residual(x_TD: Tensor, again_TD: Tensor) -> Tensor:
    """States that know themselves once more, for the residual sum alone.

    Whatever is read twice gets two gradients. As two results of one function they arrive apart, and the kernel that
    reads them adds them up; autograd would have written their sum to memory first. Who asks for the gradient of the
    states themselves (a hook, `autograd.grad`) therefore gets a part of it, and wants the plain code.
    """
    x_TD.again = again_TD  # type: ignore[attr-defined]
    return x_TD


def residual_input(x_TD: Tensor) -> Tensor:
    """The states as the residual sum reads them."""
    found: Tensor = getattr(x_TD, "again", x_TD)
    return found


def next_seed(seeds: DropoutSeeds, like: Tensor, rate: float) -> Tensor:
    """A seed for one dropout, where a tensor lies; without dropout there is none, only the place where one would be."""
    return seeds.take(1, like) if rate else torch.empty(1, dtype=torch.int32, device=like.device)


@cache
def _interpreted() -> bool:
    from triton import knobs

    return bool(knobs.runtime.interpret)
