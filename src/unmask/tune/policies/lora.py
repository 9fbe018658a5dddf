"""LoRA: low-rank updates of the linear layers of every block learn the task (Hu et al., 2021), through `peft`.

What arrives: a learner. What leaves: a learner whose linear layers have an update beside them that is 0 at first.
What never happens here: loading `peft` before it is asked for; it is an extra: pip install 'unmask[lora]'.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from unmask.errors import RecipeError, UserError
from unmask.optimising import Schedule
from unmask.train.pace import STILL, Pace
from unmask.tune.places import Part, Place
from unmask.tune.policy import USUAL_SCHEDULE, Recall

if TYPE_CHECKING:
    from unmask.nets.trunk import Trunk
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class Lora:
    """An update `scale / rank * B A` beside every linear layer of attention and feed-forward; it and the head move.

    Blocks that share their layers (ALBERT) share the updates, too.
    """

    rank: int = 8
    scale: int = 16
    """How strongly the update counts (alpha in the paper)."""
    dropout: float = 0.0
    """Of what the update reads."""
    name: ClassVar[str] = "lora"
    usual_rate: ClassVar[float] = 5e-4
    schedule: ClassVar[Schedule] = USUAL_SCHEDULE
    remembers: ClassVar[Recall] = Recall.NOTHING
    apart: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rank < 1 or self.scale <= 0 or not 0 <= self.dropout < 1:
            raise RecipeError(
                f"LoRA needs a rank of at least 1, a positive scale and a dropout below 1; found {self.rank}, "
                f"{self.scale} and {self.dropout}."
            )

    def check(self, trunk: Trunk) -> None:
        """Refuse to begin without the library, or with an update that is no smaller than the layer itself."""
        if self.rank > trunk.width:
            raise RecipeError(
                f"An update of rank {self.rank} is larger than the layers of the network, which are {trunk.width} "
                "wide. Take a lower --rank; usual is 8."
            )
        if find_spec("peft") is None:
            raise UserError(
                "The policy 'lora' needs the library peft, which is not installed. Install it with: pip install "
                "'unmask[lora]'"
            )

    def equip(self, learner: Learner, seed: int) -> None:
        """Wrap the linear layers of all blocks."""
        self.check(learner.trunk.trunk)
        import torch
        from peft import LoraConfig, inject_adapter_in_model
        from torch import nn

        from unmask.nets.fused import use_kernels

        blocks = learner.trunk.layers
        use_kernels(blocks, False)  # whatever an update stands beside is no longer a product alone
        linear = [name for name, part in blocks.named_modules() if isinstance(part, nn.Linear)]
        config = LoraConfig(r=self.rank, lora_alpha=self.scale, lora_dropout=self.dropout, target_modules=linear)
        with torch.random.fork_rng():  # peft draws from torch's own generator
            torch.manual_seed(seed)
            inject_adapter_in_model(config, blocks)

    def pace(self, place: Place, top: int) -> Pace:
        """Updates and heads move, the trunk never."""
        return Pace() if place.above or place.part is Part.ADDED else STILL


def merge_updates(learner: Learner) -> None:
    """Add every update to the layer that it stands beside: the same network in its plain shape, ready for export."""
    from peft.tuners.lora import LoraLayer

    for parent in list(learner.trunk.modules()):
        for name, part in list(parent.named_children()):
            if isinstance(part, LoraLayer):
                part.merge()
                setattr(parent, name, part.get_base_layer())
