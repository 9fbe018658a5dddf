"""Train part of the encoder: the top blocks, gradual unfreezing (ULMFiT), or the layer norms only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.optim import Schedule, SlantedTriangular
from unmask.core.errors import RecipeError
from unmask.finetuning.methods.protocol import DEFAULT_SCHEDULE, CachedLayers
from unmask.finetuning.parameter_roles import ParameterLocation, ParameterRole
from unmask.train.optim.param_lr import FROZEN, ParamLR

if TYPE_CHECKING:
    from unmask.config.network import NetworkConfig
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class TopLayers:
    """Train the top blocks and the head; no gradient is computed below them.

    Blocks with shared weights (ALBERT) must be trained together with all blocks that share them.
    """

    num_blocks: int = 1
    name: ClassVar[str] = "top"
    default_lr: ClassVar[float] = 5e-5
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.num_blocks < 1:
            raise RecipeError(
                f"The method 'top' trains at least 1 block, found --num-top-blocks {self.num_blocks}. Use the method "
                "'frozen' to train none."
            )

    def check(self, config: NetworkConfig) -> None:
        """Refuse more blocks than there are, and blocks that share weights with lower ones."""
        if self.num_blocks > config.depth:
            raise RecipeError(
                f"--num-top-blocks {self.num_blocks}: the network has {config.depth} blocks. Use {config.depth} or "
                "fewer, or the method 'full'."
            )
        layers = config.layer_of_depth
        separate = [n for n in range(1, config.depth + 1) if not set(layers[:-n]) & set(layers[-n:])]
        if self.num_blocks not in separate:
            raise RecipeError(
                f"--num-top-blocks {self.num_blocks} of {config.depth}: these blocks share weights with lower ones, "
                f"which would be trained too. Use --num-top-blocks {next(n for n in separate if n > self.num_blocks)}, "
                "or the method 'full'."
            )

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """No modules are added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """The top blocks, the last norm and the heads are trained."""
        return ParamLR() if location.level >= top_level - self.num_blocks else FROZEN


@dataclass(frozen=True, slots=True)
class GradualUnfreezing:
    """Gradual unfreezing with discriminative and slanted triangular learning rates (Howard and Ruder, 2018).

    The paper unfreezes one level per epoch and then trains until nothing improves. Here a run has a fixed budget and a
    deep network more levels than a task has epochs, so levels are unfrozen in equal steps over the first part of the
    budget. The step of a level follows from the progress of the run, so a resumed run unfreezes at the same steps.
    """

    layer_lr_decay: float = 1 / 2.6
    """The learning rate of a level relative to the level above it."""
    unfreeze_fraction: float = 0.5
    """The fraction of the budget after which all levels are trained."""
    name: ClassVar[str] = "gradual"
    default_lr: ClassVar[float] = 5e-4
    schedule: ClassVar[Schedule] = SlantedTriangular()
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.layer_lr_decay <= 1:
            raise RecipeError(
                f"Layer-wise learning-rate decay must be above 0 and at most 1, found {self.layer_lr_decay}. Correct "
                "--layer-lr-decay."
            )
        if not 0 <= self.unfreeze_fraction < 1:
            raise RecipeError(
                f"All levels must be unfrozen after a fraction of the budget below 1, found {self.unfreeze_fraction}."
            )

    def check(self, config: NetworkConfig) -> None:
        """Every network is supported."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """No modules are added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Lower levels are unfrozen later and with a lower learning rate; the embeddings are last."""
        below = top_level - location.level
        return ParamLR(self.layer_lr_decay**below, self.unfreeze_fraction * below / top_level)


@dataclass(frozen=True, slots=True)
class NormOnly:
    """Train the gains and biases of the layer norms, and the head: the baseline of adapters (Houlsby et al., 2019)."""

    name: ClassVar[str] = "norms"
    default_lr: ClassVar[float] = 1e-3
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = True

    def check(self, config: NetworkConfig) -> None:
        """Every network is supported."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """No modules are added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Norms and heads are trained."""
        return FROZEN if location.role in (ParameterRole.EMBED, ParameterRole.BLOCK) else ParamLR()
