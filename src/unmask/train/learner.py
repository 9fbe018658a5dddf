"""The learner: a trunk with the heads of its objectives, as one module that is wrapped once.

What arrives: a flat batch. What leaves: one `Term` for each objective of the task.
What never happens here: a weighted sum. Weights and counts are the loop's business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from unmask.errors import InputError
from unmask.nets.batch import Batch
from unmask.nets.transformer import States, Transformer, draw_weights
from unmask.nets.trunk import Trunk
from unmask.objectives.heads import Term
from unmask.objectives.part import Learnable, Objective


class Learner(nn.Module):
    """A Transformer and a head for every objective, each made once even if several tasks learn it."""

    def __init__(self, trunk: Trunk, objectives: Sequence[Learnable], vocabulary: int, positions: int) -> None:
        super().__init__()
        self.trunk = Transformer(trunk, vocabulary, positions)
        self.mix: nn.Module = nn.Identity()
        """What the heads read instead of the states as they are, e.g. a weighted sum of all layers."""
        self.compiled = self.rests = False
        self.heads = nn.ModuleDict({one.name: one.head(trunk, self.trunk.embed.token) for one in objectives})

    def forward(self, batch: Batch, objectives: Sequence[Objective]) -> tuple[Term, ...]:
        """One pass through the trunk, then every objective reads the states."""
        states = self.states(batch)
        return tuple(self.heads[objective.name](states, batch) for objective in objectives)

    def states(self, batch: Batch) -> States:
        """What the heads read: the states that came with the batch, or those that the trunk makes of its tokens."""
        mixed: States = self.mix(States(batch.states) if batch.states else self.trunk(batch.tokens))
        return mixed

    def rest_trunk(self) -> None:
        """Let the trunk stay as it is from now on: no dropout, no gradient; only what stands on it learns."""
        self.rests = True
        self.trunk.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> Learner:
        """As any module; a trunk at rest stays at rest."""
        super().train(mode)
        if self.rests:
            self.trunk.eval()
        return self

    @property
    def vocabulary(self) -> int:
        """The number of rows of the token embedding."""
        return self.trunk.embed.token.num_embeddings

    @property
    def positions(self) -> int:
        """The longest row that the position embedding has a place for; 0 where positions are not learned."""
        position = self.trunk.embed.position
        return position.num_embeddings if isinstance(position, nn.Embedding) else 0

    def draw(self, seed: int) -> None:
        """Initial weights, the same for the same seed everywhere."""
        draw_weights(self, self.trunk.trunk.spread, torch.Generator().manual_seed(seed))

    def compile_blocks(self) -> None:
        """Let torch compile every block when it first runs; names and weights stay as they are."""
        if not self.compiled:
            for block in self.trunk.blocks():
                block.compile(dynamic=True)
        self.compiled = True

    def weights(self) -> dict[str, Tensor]:
        """Every parameter once, by the first of its names. These are the live tensors, not copies."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def take_weights(self, saved: Mapping[str, Tensor]) -> None:
        """Copy saved parameters in; refuses what does not fit this network in name or shape."""
        take_weights(self, saved)


@torch.no_grad()
def take_weights(network: nn.Module, saved: Mapping[str, Tensor]) -> None:
    """Copy saved parameters into a network, shared ones once; refuses what does not fit it in name or shape."""
    ours = dict(network.named_parameters())
    wrong = [name for name in sorted(ours.keys() | saved.keys()) if not _fits(name, ours, saved)]
    if wrong:
        raise InputError(
            f"The saved network does not fit this recipe: {len(wrong)} of its {len(ours)} parameters are missing, "
            f"left over or of another shape, the first being '{wrong[0]}'. Use the recipe that it was trained with."
        )
    for name, parameter in ours.items():
        parameter.copy_(saved[name])


def _fits(name: str, ours: Mapping[str, Tensor], saved: Mapping[str, Tensor]) -> bool:
    return name in ours and name in saved and ours[name].shape == saved[name].shape
