"""How weights are moved, as values: the optimiser, the schedule of its rate and the clipping. No torch here.

What arrives: the numbers of a paper. What leaves: frozen values that `train/optim.py` and `train/schedule.py` read.
What never happens here: a number of steps for a whole run. A schedule speaks of *shares of the budget*; the run says
whether that budget is counted in steps, in tokens or in hours, so the same recipe fits ten minutes and ten days.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from unmask.errors import RecipeError

Betas: TypeAlias = tuple[float, float]


def _check_adam(who: str, rate: float, betas: Betas, epsilon: float, decay: float) -> None:
    _need(who, "a positive rate", rate, rate > 0)
    for beta in betas:
        _need(who, "betas of at least 0 and below 1", beta, 0 <= beta < 1)
    _need(who, "a positive epsilon", epsilon, epsilon > 0)
    _need(who, "a decay of at least 0", decay, decay >= 0)


def _need(who: str, what: str, found: float, holds: bool) -> None:
    if not holds or not math.isfinite(found):
        raise RecipeError(f"{who} needs {what}; found {found}. Change that number in the recipe.")


@dataclass(frozen=True, slots=True)
class AdamW:
    """Adam with decoupled weight decay: w -= rate * (m / (sqrt(v) + epsilon) + decay * w).

    The defaults are those of BERT's released code (Devlin et al., 2018): the averages m and v are *not* corrected for
    their start at zero, and the decay stands inside the rate (Loshchilov and Hutter, 2017). Parameters with fewer than
    two dimensions (norms and biases) do not decay. RoBERTa (Liu et al., 2019) takes betas (0.9, 0.98).
    """

    rate: float
    """The highest learning rate; a schedule multiplies it."""
    betas: Betas = (0.9, 0.999)
    epsilon: float = 1e-6
    decay: float = 0.01
    correct_bias: bool = False

    def __post_init__(self) -> None:
        _check_adam("AdamW", self.rate, self.betas, self.epsilon, self.decay)


@dataclass(frozen=True, slots=True)
class LAMB:
    """AdamW sized to the tensor: w -= rate * (|w| / |u|) * u, with u the update of AdamW (You et al., 2019).

    The ratio is 1 where either norm is 0. Norms and biases neither decay nor take the ratio. The defaults are those of
    ALBERT's released code (Lan et al., 2019), which leaves out the bias correction of the LAMB paper.
    """

    rate: float
    betas: Betas = (0.9, 0.999)
    epsilon: float = 1e-6
    decay: float = 0.01
    correct_bias: bool = False

    def __post_init__(self) -> None:
        _check_adam("LAMB", self.rate, self.betas, self.epsilon, self.decay)


@dataclass(frozen=True, slots=True)
class StableAdamW:
    """AdamW with clipped updates, which makes gradient clipping unnecessary (Wortsman et al., 2023; ModernBERT, 2024).

    The rate of each tensor is divided by max(1, RMS), with RMS the root mean square of g / max(sqrt(v), epsilon): it
    exceeds 1 where the gradient has outgrown its own history. As in the paper, the divided rate also scales the decay.
    Betas and epsilon are those of ModernBERT (Warner et al., 2024).
    """

    rate: float
    betas: Betas = (0.9, 0.98)
    epsilon: float = 1e-6
    decay: float = 0.01
    correct_bias: bool = True

    def __post_init__(self) -> None:
        _check_adam("StableAdamW", self.rate, self.betas, self.epsilon, self.decay)


@dataclass(frozen=True, slots=True)
class Adamax:
    """Adam by the largest gradient instead of the mean square: w -= rate * m / u, u = max(beta_2 * u, |g| + epsilon).

    Kingma and Ba (2014, section 7.1); the optimiser of MT-DNN (Liu et al., 2019), at a rate of 5e-5. The average m is
    corrected for its start at zero; u needs no correction. Nothing decays.
    """

    rate: float
    betas: Betas = (0.9, 0.999)
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check_adam("Adamax", self.rate, self.betas, self.epsilon, 0.0)


class Balance(StrEnum):
    """How the losses of a step are weighed against each other."""

    FIXED = "fixed"
    """By the weights of the objectives, as papers give them."""
    LEARNED = "learned"
    """By weights that begin there and are learned with the network: each loss is divided by its own uncertainty, which
    has a price (Kendall, Gal and Cipolla, 2018)."""


class Sizing(StrEnum):
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

    rate: float
    rest: AdamW
    momentum: float = 0.95
    decay: float = 0.1
    rounds: int = 5
    sizing: Sizing = Sizing.MATCH_ADAMW

    def __post_init__(self) -> None:
        _need("Muon", "a positive rate", self.rate, self.rate > 0)
        _need("Muon", "a momentum of at least 0 and below 1", self.momentum, 0 <= self.momentum < 1)
        _need("Muon", "a decay of at least 0", self.decay, self.decay >= 0)
        _need("Muon", "between 1 and 99 rounds", self.rounds, 1 <= self.rounds < 100)


Optimiser: TypeAlias = AdamW | LAMB | StableAdamW | Adamax | Muon


@dataclass(frozen=True, slots=True)
class WarmupSteps:
    """The rate rises from 0 in a straight line for this many steps; 0 for none. BERT: 10,000 of a million."""

    count: int

    def __post_init__(self) -> None:
        _need("A warm-up", "a number of steps of at least 0", self.count, self.count >= 0)


@dataclass(frozen=True, slots=True)
class WarmupShare:
    """The rate rises from 0 in a straight line over this share of the budget. BERT: 0.01."""

    share: float

    def __post_init__(self) -> None:
        _need("A warm-up", "a share of the budget of at least 0 and below 1", self.share, 0 <= self.share < 1)


Warmup: TypeAlias = WarmupSteps | WarmupShare
NO_WARMUP = WarmupSteps(0)


class Origin(StrEnum):
    """From where a straight fall is measured."""

    PEAK = "peak"
    """From the end of the warm-up, at the full rate (fairseq, RoBERTa)."""
    START = "start"
    """From the first step, as BERT's and ALBERT's released code: after a warm-up of 1 %, the rate goes on at 99 %."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A straight fall to `end` (a share of the rate) when the budget is used up (BERT, RoBERTa, ELECTRA, SpanBERT)."""

    warmup: Warmup = NO_WARMUP
    end: float = 0.0
    origin: Origin = Origin.PEAK

    def __post_init__(self) -> None:
        _need("Linear", "an end between 0 and 1, as a share of the rate", self.end, 0 <= self.end <= 1)


@dataclass(frozen=True, slots=True)
class Cosine:
    """Half a cosine wave down to `end` (GPT-1, Transformer-XL, Megatron; Loshchilov and Hutter, 2016)."""

    warmup: Warmup = NO_WARMUP
    end: float = 0.0

    def __post_init__(self) -> None:
        _need("Cosine", "an end between 0 and 1, as a share of the rate", self.end, 0 <= self.end <= 1)


@dataclass(frozen=True, slots=True)
class InverseRoot:
    """Falls with the root of the steps: sqrt(warm-up / step) (Vaswani et al., 2017; ERNIE 2.0, MASS)."""

    warmup: Warmup

    def __post_init__(self) -> None:
        long = self.warmup.count if isinstance(self.warmup, WarmupSteps) else self.warmup.share
        _need("InverseRoot", "a warm-up, because the end of it sets the scale,", long, long > 0)


@dataclass(frozen=True, slots=True)
class Constant:
    """The full rate after the warm-up."""

    warmup: Warmup = NO_WARMUP


@dataclass(frozen=True, slots=True)
class Slanted:
    """A steep rise from rate / ratio and a long fall back: the slanted triangle of ULMFiT (Howard and Ruder, 2018)."""

    rise: float = 0.1
    """The share of the budget that the rise takes (`cut_frac` in the paper)."""
    ratio: float = 32.0
    """How much smaller the lowest rate is than the highest."""

    def __post_init__(self) -> None:
        _need("Slanted", "a rise between 0 and 1", self.rise, 0 < self.rise < 1)
        _need("Slanted", "a ratio of at least 1", self.ratio, self.ratio >= 1)


Schedule: TypeAlias = Linear | Cosine | InverseRoot | Constant | Slanted


@dataclass(frozen=True, slots=True)
class Descent:
    """Everything that decides how a gradient becomes a step."""

    optimiser: Optimiser
    schedule: Schedule
    clip: float = 1.0
    """The longest gradient, as one norm over all parameters: BERT 1, ELMo 10; 0 leaves it as it is (RoBERTa)."""

    def __post_init__(self) -> None:
        _need("Clipping", "a norm of at least 0 (0 for none)", self.clip, self.clip >= 0)
