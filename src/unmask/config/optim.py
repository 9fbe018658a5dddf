"""Optimizers, learning-rate schedules with warm-up, and gradient clipping, as values. No torch here.

`train/optim/` builds them. A schedule is a function of the share of the budget that is used, so that one recipe fits a
budget in steps, tokens or hours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from unmask.core.errors import RecipeError

Betas: TypeAlias = tuple[float, float]


def _check_adam(name: str, lr: float, betas: Betas, eps: float, weight_decay: float) -> None:
    _require(name, "a positive learning rate", lr, lr > 0)
    for beta in betas:
        _require(name, "betas of at least 0 and below 1", beta, 0 <= beta < 1)
    _require(name, "a positive epsilon", eps, eps > 0)
    _require(name, "a decay of at least 0", weight_decay, weight_decay >= 0)


def _require(name: str, needed: str, found: float, holds: bool) -> None:
    if not holds or not math.isfinite(found):
        raise RecipeError(f"{name} needs {needed}; found {found}. Change that number in the recipe.")


@dataclass(frozen=True, slots=True)
class AdamW:
    """Adam with decoupled weight decay: w -= rate * (m / (sqrt(v) + epsilon) + decay * w).

    The defaults are those of BERT's released code (Devlin et al., 2018): no bias correction of m and v, and a decay
    that is scaled by the learning rate (Loshchilov and Hutter, 2017). Parameters with fewer than two dimensions (norms
    and biases) do not decay. RoBERTa (Liu et al., 2019) takes betas (0.9, 0.98).
    """

    lr: float
    """The peak learning rate; the schedule multiplies it by a factor of at most 1."""
    betas: Betas = (0.9, 0.999)
    eps: float = 1e-6
    weight_decay: float = 0.01
    bias_correction: bool = False

    def __post_init__(self) -> None:
        _check_adam("AdamW", self.lr, self.betas, self.eps, self.weight_decay)


@dataclass(frozen=True, slots=True)
class LAMB:
    """AdamW with a trust ratio for each tensor: w -= rate * (|w| / |u|) * u (You et al., 2019).

    Here u is the update of AdamW. The ratio is 1 where either norm is 0, and for norms and biases, which do not decay
    either. The defaults are those of ALBERT's released code (Lan et al., 2019), without the bias correction of the
    paper.
    """

    lr: float
    betas: Betas = (0.9, 0.999)
    eps: float = 1e-6
    weight_decay: float = 0.01
    bias_correction: bool = False

    def __post_init__(self) -> None:
        _check_adam("LAMB", self.lr, self.betas, self.eps, self.weight_decay)


@dataclass(frozen=True, slots=True)
class StableAdamW:
    """AdamW with clipped updates, which makes gradient clipping unnecessary (Wortsman et al., 2023; ModernBERT, 2024).

    The learning rate of each tensor is divided by max(1, RMS), with RMS the root mean square of g / max(sqrt(v), eps).
    As in the paper, the divided rate also scales the decay.
    Betas and epsilon are those of ModernBERT (Warner et al., 2024).
    """

    lr: float
    betas: Betas = (0.9, 0.98)
    eps: float = 1e-6
    weight_decay: float = 0.01
    bias_correction: bool = True

    def __post_init__(self) -> None:
        _check_adam("StableAdamW", self.lr, self.betas, self.eps, self.weight_decay)


@dataclass(frozen=True, slots=True)
class Adamax:
    """Adam with the infinity norm: w -= rate * m / u, with u = max(beta_2 * u, |g| + epsilon).

    Kingma and Ba (2014, section 7.1); the optimizer of MT-DNN (Liu et al., 2019), at a learning rate of 5e-5. Bias
    correction of m, none of u, no weight decay.
    """

    lr: float
    betas: Betas = (0.9, 0.999)
    eps: float = 1e-8

    def __post_init__(self) -> None:
        _check_adam("Adamax", self.lr, self.betas, self.eps, 0.0)


class LossWeighting(StrEnum):
    """The weights of several losses in one step."""

    FIXED = "fixed"
    """The weights of the objectives in the recipe."""
    LEARNED = "learned"
    """Learned uncertainty weights, initialized with those of the recipe (Kendall, Gal and Cipolla, 2018)."""


class UpdateScale(StrEnum):
    """The factor of Muon's orthogonal update for a matrix of A rows and B columns."""

    ORIGINAL = "original"
    """sqrt(max(1, A / B)): needs a learning rate of its own, near 0.02 (Jordan et al., 2024)."""
    MATCH_ADAMW = "match_rms_adamw"
    """0.2 * sqrt(max(A, B)): as large as an AdamW update, so that learning rates carry over (Liu et al., 2025)."""


@dataclass(frozen=True, slots=True)
class Muon:
    """Orthogonalized momentum for the matrices inside the blocks, AdamW for all else (Jordan et al., 2024).

    Five Newton-Schulz iterations bring all singular values of an update near 1. Embeddings, heads, norms and biases are
    updated by `adamw`. The decay of 0.1 is that of Liu et al. (2025).
    """

    lr: float
    adamw: AdamW
    momentum: float = 0.95
    weight_decay: float = 0.1
    ns_steps: int = 5
    update_scale: UpdateScale = UpdateScale.MATCH_ADAMW

    def __post_init__(self) -> None:
        _require("Muon", "a positive learning rate", self.lr, self.lr > 0)
        _require("Muon", "a momentum of at least 0 and below 1", self.momentum, 0 <= self.momentum < 1)
        _require("Muon", "a decay of at least 0", self.weight_decay, self.weight_decay >= 0)
        _require("Muon", "between 1 and 99 Newton-Schulz steps", self.ns_steps, 1 <= self.ns_steps < 100)


OptimizerConfig: TypeAlias = AdamW | LAMB | StableAdamW | Adamax | Muon


@dataclass(frozen=True, slots=True)
class WarmupSteps:
    """Linear warm-up of the learning rate over this many steps; 0 for none. BERT: 10,000 of a million."""

    num_steps: int

    def __post_init__(self) -> None:
        _require("A warm-up", "a number of steps of at least 0", self.num_steps, self.num_steps >= 0)


@dataclass(frozen=True, slots=True)
class WarmupFraction:
    """Linear warm-up of the learning rate over this fraction of the budget. BERT: 0.01."""

    fraction: float

    def __post_init__(self) -> None:
        _require("A warm-up", "a share of the budget of at least 0 and below 1", self.fraction, 0 <= self.fraction < 1)


Warmup: TypeAlias = WarmupSteps | WarmupFraction
NO_WARMUP = WarmupSteps(0)


class DecayFrom(StrEnum):
    """The point from which linear decay is computed."""

    PEAK = "peak"
    """The end of the warm-up, at the peak learning rate (fairseq, RoBERTa)."""
    START = "start"
    """The first step, as in BERT's and ALBERT's released code: after a warm-up of 1 %, decay begins at 99 %."""


@dataclass(frozen=True, slots=True)
class Linear:
    """Linear decay to `end_factor` times the peak at the end of the budget (BERT, RoBERTa, ELECTRA, SpanBERT)."""

    warmup: Warmup = NO_WARMUP
    end_factor: float = 0.0
    decay_from: DecayFrom = DecayFrom.PEAK

    def __post_init__(self) -> None:
        _require("Linear", "an end between 0 and 1, as a share of the rate", self.end_factor, 0 <= self.end_factor <= 1)


@dataclass(frozen=True, slots=True)
class Cosine:
    """Cosine decay to `end_factor` times the peak (GPT-1, Transformer-XL, Megatron; Loshchilov and Hutter, 2016)."""

    warmup: Warmup = NO_WARMUP
    end_factor: float = 0.0

    def __post_init__(self) -> None:
        _require("Cosine", "an end between 0 and 1, as a share of the rate", self.end_factor, 0 <= self.end_factor <= 1)


@dataclass(frozen=True, slots=True)
class InverseSqrt:
    """Inverse square-root decay: sqrt(warm-up / step) (Vaswani et al., 2017; ERNIE 2.0, MASS)."""

    warmup: Warmup

    def __post_init__(self) -> None:
        long = self.warmup.num_steps if isinstance(self.warmup, WarmupSteps) else self.warmup.fraction
        _require("InverseSqrt", "a warm-up, because its end sets the scale,", long, long > 0)


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant learning rate after the warm-up."""

    warmup: Warmup = NO_WARMUP


@dataclass(frozen=True, slots=True)
class SlantedTriangular:
    """Slanted triangular learning rates (ULMFiT; Howard and Ruder, 2018, section 3.2)."""

    cut_frac: float = 0.1
    """The fraction of the budget in which the learning rate rises."""
    ratio: float = 32.0
    """The ratio of the highest to the lowest learning rate."""

    def __post_init__(self) -> None:
        _require("SlantedTriangular", "a rise between 0 and 1", self.cut_frac, 0 < self.cut_frac < 1)
        _require("SlantedTriangular", "a ratio of at least 1", self.ratio, self.ratio >= 1)


Schedule: TypeAlias = Linear | Cosine | InverseSqrt | Constant | SlantedTriangular


@dataclass(frozen=True, slots=True)
class OptimConfig:
    """Optimizer, learning-rate schedule and gradient clipping."""

    optimizer: OptimizerConfig
    schedule: Schedule
    max_grad_norm: float = 1.0
    """Gradient clipping by the norm over all parameters: BERT 1, ELMo 10; 0 for none (RoBERTa)."""

    def __post_init__(self) -> None:
        _require("Clipping", "a norm of at least 0 (0 for none)", self.max_grad_norm, self.max_grad_norm >= 0)
