"""How weights are moved, as values: the optimiser, the schedule of its rate and the clipping. No torch here.

What arrives: the numbers of a paper. What leaves: frozen values that `train/optim/build.py` and `train/optim/lr_schedule.py` read.
What never happens here: a number of steps for a whole run. A schedule speaks of *shares of the budget*; the run says
whether that budget is counted in steps, in tokens or in hours, so the same recipe fits ten minutes and ten days.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from unmask.core.errors import RecipeError

Betas: TypeAlias = tuple[float, float]


def _check_adam(who: str, lr: float, betas: Betas, eps: float, weight_decay: float) -> None:
    _require(who, "a positive rate", lr, lr > 0)
    for beta in betas:
        _require(who, "betas of at least 0 and below 1", beta, 0 <= beta < 1)
    _require(who, "a positive epsilon", eps, eps > 0)
    _require(who, "a decay of at least 0", weight_decay, weight_decay >= 0)


def _require(who: str, what: str, found: float, holds: bool) -> None:
    if not holds or not math.isfinite(found):
        raise RecipeError(f"{who} needs {what}; found {found}. Change that number in the recipe.")


@dataclass(frozen=True, slots=True)
class AdamW:
    """Adam with decoupled weight decay: w -= rate * (m / (sqrt(v) + epsilon) + decay * w).

    The defaults are those of BERT's released code (Devlin et al., 2018): the averages m and v are *not* corrected for
    their start at zero, and the decay stands inside the rate (Loshchilov and Hutter, 2017). Parameters with fewer than
    two dimensions (norms and biases) do not decay. RoBERTa (Liu et al., 2019) takes betas (0.9, 0.98).
    """

    lr: float
    """The highest learning rate; a schedule multiplies it."""
    betas: Betas = (0.9, 0.999)
    eps: float = 1e-6
    weight_decay: float = 0.01
    bias_correction: bool = False

    def __post_init__(self) -> None:
        _check_adam("AdamW", self.lr, self.betas, self.eps, self.weight_decay)


@dataclass(frozen=True, slots=True)
class LAMB:
    """AdamW sized to the tensor: w -= rate * (|w| / |u|) * u, with u the update of AdamW (You et al., 2019).

    The ratio is 1 where either norm is 0. Norms and biases neither decay nor take the ratio. The defaults are those of
    ALBERT's released code (Lan et al., 2019), which leaves out the bias correction of the LAMB paper.
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

    The rate of each tensor is divided by max(1, RMS), with RMS the root mean square of g / max(sqrt(v), epsilon): it
    exceeds 1 where the gradient has outgrown its own history. As in the paper, the divided rate also scales the decay.
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
    """Adam by the largest gradient instead of the mean square: w -= rate * m / u, u = max(beta_2 * u, |g| + epsilon).

    Kingma and Ba (2014, section 7.1); the optimiser of MT-DNN (Liu et al., 2019), at a rate of 5e-5. The average m is
    corrected for its start at zero; u needs no correction. Nothing decays.
    """

    lr: float
    betas: Betas = (0.9, 0.999)
    eps: float = 1e-8

    def __post_init__(self) -> None:
        _check_adam("Adamax", self.lr, self.betas, self.eps, 0.0)


class LossWeighting(StrEnum):
    """How the losses of a step are weighed against each other."""

    FIXED = "fixed"
    """By the weights of the objectives, as papers give them."""
    LEARNED = "learned"
    """By weights that begin there and are learned with the network: each loss is divided by its own uncertainty, which
    has a price (Kendall, Gal and Cipolla, 2018)."""


class UpdateScale(StrEnum):
    """How large Muon's orthogonal update is made for a matrix of A rows and B columns."""

    ORIGINAL = "original"
    """sqrt(max(1, A / B)): needs a rate of its own, near 0.02 (Jordan et al., 2024)."""
    MATCH_ADAMW = "match_rms_adamw"
    """0.2 * sqrt(max(A, B)): as large as an AdamW update, so its rates can be reused (Liu et al., 2025)."""


@dataclass(frozen=True, slots=True)
class Muon:
    """Momentum made orthogonal, for the matrices inside the blocks; AdamW for everything else (Jordan et al., 2024).

    Five rounds of a Newton-Schulz iteration bring all singular values of an update near 1. Embeddings, heads, norms and
    biases have no such geometry and are moved by `rest`. The decay of 0.1 is that of Liu et al. (2025).
    """

    lr: float
    adamw: AdamW
    momentum: float = 0.95
    weight_decay: float = 0.1
    ns_steps: int = 5
    update_scale: UpdateScale = UpdateScale.MATCH_ADAMW

    def __post_init__(self) -> None:
        _require("Muon", "a positive rate", self.lr, self.lr > 0)
        _require("Muon", "a momentum of at least 0 and below 1", self.momentum, 0 <= self.momentum < 1)
        _require("Muon", "a decay of at least 0", self.weight_decay, self.weight_decay >= 0)
        _require("Muon", "between 1 and 99 rounds", self.ns_steps, 1 <= self.ns_steps < 100)


OptimizerConfig: TypeAlias = AdamW | LAMB | StableAdamW | Adamax | Muon


@dataclass(frozen=True, slots=True)
class WarmupSteps:
    """The rate rises from 0 in a straight line for this many steps; 0 for none. BERT: 10,000 of a million."""

    num_steps: int

    def __post_init__(self) -> None:
        _require("A warm-up", "a number of steps of at least 0", self.num_steps, self.num_steps >= 0)


@dataclass(frozen=True, slots=True)
class WarmupFraction:
    """The rate rises from 0 in a straight line over this share of the budget. BERT: 0.01."""

    fraction: float

    def __post_init__(self) -> None:
        _require("A warm-up", "a share of the budget of at least 0 and below 1", self.fraction, 0 <= self.fraction < 1)


Warmup: TypeAlias = WarmupSteps | WarmupFraction
NO_WARMUP = WarmupSteps(0)


class DecayFrom(StrEnum):
    """From where a straight fall is measured."""

    PEAK = "peak"
    """From the end of the warm-up, at the full rate (fairseq, RoBERTa)."""
    START = "start"
    """From the first step, as BERT's and ALBERT's released code: after a warm-up of 1 %, the rate goes on at 99 %."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A straight fall to `end` (a share of the rate) when the budget is used up (BERT, RoBERTa, ELECTRA, SpanBERT)."""

    warmup: Warmup = NO_WARMUP
    end_factor: float = 0.0
    decay_from: DecayFrom = DecayFrom.PEAK

    def __post_init__(self) -> None:
        _require("Linear", "an end between 0 and 1, as a share of the rate", self.end_factor, 0 <= self.end_factor <= 1)


@dataclass(frozen=True, slots=True)
class Cosine:
    """Half a cosine wave down to `end` (GPT-1, Transformer-XL, Megatron; Loshchilov and Hutter, 2016)."""

    warmup: Warmup = NO_WARMUP
    end_factor: float = 0.0

    def __post_init__(self) -> None:
        _require("Cosine", "an end between 0 and 1, as a share of the rate", self.end_factor, 0 <= self.end_factor <= 1)


@dataclass(frozen=True, slots=True)
class InverseSqrt:
    """Falls with the root of the steps: sqrt(warm-up / step) (Vaswani et al., 2017; ERNIE 2.0, MASS)."""

    warmup: Warmup

    def __post_init__(self) -> None:
        long = self.warmup.num_steps if isinstance(self.warmup, WarmupSteps) else self.warmup.fraction
        _require("InverseRoot", "a warm-up, because the end of it sets the scale,", long, long > 0)


@dataclass(frozen=True, slots=True)
class Constant:
    """The full rate after the warm-up."""

    warmup: Warmup = NO_WARMUP


@dataclass(frozen=True, slots=True)
class SlantedTriangular:
    """A steep rise from rate / ratio and a long fall back: the slanted triangle of ULMFiT (Howard and Ruder, 2018)."""

    cut_frac: float = 0.1
    """The share of the budget that the rise takes (`cut_frac` in the paper)."""
    ratio: float = 32.0
    """How much smaller the lowest rate is than the highest."""

    def __post_init__(self) -> None:
        _require("Slanted", "a rise between 0 and 1", self.cut_frac, 0 < self.cut_frac < 1)
        _require("Slanted", "a ratio of at least 1", self.ratio, self.ratio >= 1)


Schedule: TypeAlias = Linear | Cosine | InverseSqrt | Constant | SlantedTriangular


@dataclass(frozen=True, slots=True)
class OptimConfig:
    """Everything that decides how a gradient becomes a step."""

    optimizer: OptimizerConfig
    schedule: Schedule
    max_grad_norm: float = 1.0
    """The longest gradient, as one norm over all parameters: BERT 1, ELMo 10; 0 leaves it as it is (RoBERTa)."""

    def __post_init__(self) -> None:
        _require("Clipping", "a norm of at least 0 (0 for none)", self.max_grad_norm, self.max_grad_norm >= 0)
