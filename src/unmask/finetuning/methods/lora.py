"""LoRA: low-rank updates of the linear layers of every block learn the task (Hu et al., 2021), through `peft`.

What arrives: a learner. What leaves: a learner whose linear layers have an update beside them that is 0 at first.
What never happens here: loading `peft` before it is asked for; it is an extra: pip install 'unmask[lora]'.
"""

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
    """An update `scale / rank * B A` beside every linear layer of attention and feed-forward; it and the head move.

    Blocks that share their layers (ALBERT) share the updates, too.
    """

    rank: int = 8
    alpha: int = 16
    """How strongly the update counts (alpha in the paper)."""
    dropout: float = 0.0
    """Of what the update reads."""
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

    def check(self, trunk: NetworkConfig) -> None:
        """Refuse to begin without the library, or with an update that is no smaller than the layer itself."""
        if self.rank > trunk.width:
            raise RecipeError(
                f"An update of rank {self.rank} is larger than the layers of the network, which are {trunk.width} "
                "wide. Take a lower --lora-rank; usual is 8."
            )
        if find_spec("peft") is None:
            raise UserError(
                "The policy 'lora' needs the library peft, which is not installed. Install it with: pip install "
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
        use_kernels(blocks, False)  # whatever an update stands beside is no longer a product alone
        linear = [name for name, part in blocks.named_modules() if isinstance(part, nn.Linear)]
        config = LoraConfig(r=self.rank, lora_alpha=self.alpha, lora_dropout=self.dropout, target_modules=linear)
        with torch.random.fork_rng():  # peft draws from torch's own generator
            torch.manual_seed(seed)
            inject_adapter_in_model(config, blocks)

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Updates and heads move, the trunk never."""
        return ParamLR() if location.is_above_encoder or location.role is ParameterRole.ADDED else FROZEN


def merge_updates(learner: MultiHeadModel) -> None:
    """Add every update to the layer that it stands beside: the same network in its plain shape, ready for export."""
    from peft.tuners.lora import LoraLayer

    for parent in list(learner.network.modules()):
        for name, part in list(parent.named_children()):
            if isinstance(part, LoraLayer):
                part.merge()
                setattr(parent, name, part.get_base_layer())
