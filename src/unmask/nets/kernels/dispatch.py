"""The switch to Triton kernels, and what they compute as functions of tensors: everything around the matrix products.

`use_kernels` sets a flag on the modules of a network once, and `kernel_supports` depends on the device and type of a
tensor alone; so a captured step is the step that is replayed. The plain code next to each call is the definition; tests
compare the kernels with it. Norms, sums and losses are float32 inside. Triton is imported with the first kernel.

Shapes: T tokens, D width, F feed-forward width.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds

_KERNEL_DTYPES = frozenset({torch.bfloat16, torch.float16, torch.float32})
_DROPOUT_STEPS = 1 << 16
"""A rate is rounded to a multiple of 1 / 65,536: 0.1 becomes 0.100006."""


class FusableModule(nn.Module):
    """A module that has Triton kernels; it computes with plain torch until `set_fused`."""

    fused = False
    biased_layers: ClassVar[tuple[str, ...]] = ()
    """The names of linear layers that add their bias themselves; the bias of others may be added by a kernel."""

    def set_fused(self, on: bool) -> None:
        """Compute with kernels from now on, wherever they support a tensor, or with plain torch."""
        self.fused = on


class LinearDeferredBias(nn.Linear):
    """A linear layer whose bias is added by the next operation."""

    def forward(self, x_TD: Tensor) -> Tensor:
        """The product alone."""
        return F.linear(x_TD, self.weight)


def use_kernels(network: nn.Module, on: bool = True) -> None:
    """Switch the kernels of every module of a network on or off."""
    for part in [one for one in network.modules() if isinstance(one, FusableModule)]:
        part.set_fused(on)


@cache
def triton_available() -> bool:
    """Whether Triton can be imported."""
    return find_spec("triton") is not None


@cache
def kernel_failure(device: torch.device) -> str:
    """Why a kernel cannot run on a device although Triton is installed (no compiler); empty where one ran."""
    x_TD = torch.ones(1, 16, device=device)
    try:
        with torch.no_grad():
            bias_dropout_residual_norm(x_TD, x_TD, x_TD[0], nn.LayerNorm(16, device=device), 0.0).sum().item()
    except Exception as error:  # of Triton, a compiler or a driver
        return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
    return ""


def kernel_supports(x: Tensor) -> bool:
    """Whether kernels support this tensor: on a GPU, or anywhere while Triton interprets them."""
    return x.dtype in _KERNEL_DTYPES and x.numel() > 0 and triton_available() and (x.is_cuda or _interpreted())


def compute_dtype(x: Tensor) -> torch.dtype:
    """The type in which products are computed from a tensor: its own, or that of autocast."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def change_linear_class(layer: nn.Linear, linear_class: type[nn.Linear]) -> nn.Linear:
    """The same parameters in a linear layer of another class."""
    if type(layer) is linear_class:
        return layer
    made = linear_class(layer.in_features, layer.out_features, device="meta")
    made.weight, made.bias = layer.weight, layer.bias
    return made.train(layer.training)


def bias_dropout_residual_norm(
    x_TD: Tensor, y_TD: Tensor, bias_D: Tensor, norm: nn.LayerNorm, rate: float, seeds: DropoutSeeds = PER_CALL_SEEDS
) -> Tensor:
    """norm(x + drop(y + bias)): the end of a post-norm branch. `y` is a product; the result has its type."""
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

    activated_TF: Tensor = BiasGelu.apply(y_TF, bias_F, tanh)  # type: ignore[no-untyped-call]
    return activated_TF


def embed_norm(
    ids: tuple[Tensor, Tensor, Tensor],
    tables: tuple[nn.Module, nn.Module, nn.Module | None],
    norm: nn.Module,
    rate: float,
    seeds: DropoutSeeds = PER_CALL_SEEDS,
) -> Tensor:
    """drop(norm(token + position + segment)), for supported tables: the embeddings of a post-norm network."""
    from unmask.nets.kernels.norm import EmbedNorm

    weights = [None if table is None else table.weight for table in tables]
    seed = next_seed(seeds, ids[0], rate)
    made: tuple[Tensor, Tensor] = EmbedNorm.apply(  # type: ignore[no-untyped-call]
        tuple(one.contiguous() for one in ids), seed, rate, norm.eps, *weights, norm.weight, norm.bias
    )
    return split_residual(*made)


def split_residual(x_TD: Tensor, again_TD: Tensor) -> Tensor:
    """States with a second output of the same function as an attribute, which the residual sum reads.

    States that are read twice have two gradients. As two outputs of one function they stay separate, and the kernel
    that reads them adds them; autograd would write their sum to memory first. The gradient of the states themselves (a
    hook, `autograd.grad`) is therefore a part of the whole; take the plain code for it.
    """
    x_TD.again = again_TD  # type: ignore[attr-defined]
    return x_TD


def residual_input(x_TD: Tensor) -> Tensor:
    """The states as the residual sum reads them."""
    found: Tensor = getattr(x_TD, "again", x_TD)
    return found


def next_seed(seeds: DropoutSeeds, like: Tensor, rate: float) -> Tensor:
    """A seed for one dropout on the device of a tensor; without dropout an unused buffer."""
    return seeds.take(1, like) if rate else torch.empty(1, dtype=torch.int32, device=like.device)


@cache
def _interpreted() -> bool:
    from triton import knobs

    return bool(knobs.runtime.interpret)


def apply_dropout(x: Tensor, rate: float, training: bool = True) -> Tensor:
    """Dropout: set each number to zero with this probability, and scale the others so that the mean stays.

    On a CPU it is faster than torch's, and draws from torch's generator as well, so that seed and saved state hold.
    """
    if not training or not rate:
        return x
    if x.is_cpu and not torch.compiler.is_compiling():
        return x * _keep_factors(x, round(rate * _DROPOUT_STEPS))
    return F.dropout(x, rate)


def _keep_factors(x: Tensor, dropped: int) -> Tensor:
    """The factor of each number. Every 64 random bits decide about four numbers; torch takes as many for one.

    Both draw on one core: here in 0.9 ns a number, `bernoulli_` in 6.
    """
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
    draws = words.view(torch.int16)[: x.numel()].view(x.shape)
    return draws.ge_(dropped - _DROPOUT_STEPS // 2).to(x.dtype).mul_(_DROPOUT_STEPS / (_DROPOUT_STEPS - dropped))
