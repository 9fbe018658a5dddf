"""LoRA: low-rank updates of all linear layers in the blocks of a frozen encoder (Hu et al., 2021), by peft."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from unmask.config.optim import Schedule
from unmask.core.errors import RecipeError, UserError
from unmask.finetuning.methods.protocol import DEFAULT_SCHEDULE, CachedLayers
from unmask.finetuning.parameter_roles import ParameterLocation, ParameterRole
from unmask.train.optim.param_lr import FROZEN, ParamLR

if TYPE_CHECKING:
    from unmask.config.network import NetworkConfig
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class Lora:
    """An update `alpha / rank * B A` of every linear layer of attention and feed-forward; it and the head are trained.

    Blocks with shared weights (ALBERT) share their updates.
    """

    rank: int = 8
    alpha: int = 16
    """The scale of the update, alpha in the paper."""
    dropout: float = 0.0
    """Dropout on the input of the update."""
    name: ClassVar[str] = "lora"
    default_lr: ClassVar[float] = 5e-4
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha <= 0 or not 0 <= self.dropout < 1:
            raise RecipeError(
                f"LoRA needs a rank of at least 1, a positive scale and a dropout below 1; found {self.rank}, "
                f"{self.alpha} and {self.dropout}."
            )

    def check(self, config: NetworkConfig) -> None:
        """Refuse a rank above the width of the network, and a missing peft library."""
        if self.rank > config.width:
            raise RecipeError(
                f"An update of rank {self.rank} is larger than the layers of the network, which are {config.width} "
                "wide. Use a lower --lora-rank; the default is 8."
            )
        if find_spec("peft") is None:
            raise UserError(
                "The method 'lora' needs the library peft, which is not installed. Install it with: pip install "
                "'unmask[lora]'"
            )

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Wrap the linear layers of all blocks."""
        self.check(learner.network.config)
        import torch
        from peft import LoraConfig, inject_adapter_in_model
        from torch import nn

        from unmask.nets.kernels.dispatch import use_kernels

        blocks = nn.ModuleList(learner.network.blocks())
        use_kernels(blocks, False)  # a wrapped linear layer is no longer a single GEMM
        linear = [name for name, part in blocks.named_modules() if isinstance(part, nn.Linear)]
        config = LoraConfig(r=self.rank, lora_alpha=self.alpha, lora_dropout=self.dropout, target_modules=linear)
        with torch.random.fork_rng():  # peft initializes from the global generator
            torch.manual_seed(seed)
            inject_adapter_in_model(config, blocks)

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Updates and heads are trained."""
        return ParamLR() if location.is_above_encoder or location.role is ParameterRole.ADDED else FROZEN


def merge_updates(learner: MultiHeadModel) -> None:
    """Merge every update into its linear layer: an equivalent plain network for export."""
    from peft.tuners.lora import LoraLayer

    for parent in list(learner.network.modules()):
        for name, part in list(parent.named_children()):
            if isinstance(part, LoraLayer):
                part.merge()
                setattr(parent, name, part.get_base_layer())
