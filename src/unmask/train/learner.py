"""The learner: a trunk with the heads of its objectives, as one module that is wrapped once.

What arrives: a flat batch. What leaves: one `Term` for each objective of the task. A network that acts ahead of the
trunk comes first, and everything else reads the batch that it leaves.
What never happens here: a weighted sum. Weights and counts are the loop's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from unmask.errors import InputError
from unmask.nets.batch import Batch
from unmask.nets.block import Block
from unmask.nets.transformer import States, Transformer, draw_weights
from unmask.nets.trunk import Trunk
from unmask.objectives.heads import Picks, Term
from unmask.objectives.part import Ahead, Objective, Taught
from unmask.optimising import Balance
from unmask.train.aside import Aside
from unmask.train.balance import make_balance


class Learner(nn.Module):
    """A Transformer and a head for every objective, each made once even if several tasks learn it."""

    def __init__(
        self,
        trunk: Trunk,
        objectives: Sequence[Taught],
        vocabulary: int,
        positions: int,
        balance: Balance = Balance.FIXED,
    ) -> None:
        super().__init__()
        self.trunk = Transformer(trunk, vocabulary, positions)
        self.mix: nn.Module = nn.Identity()
        """What the heads read instead of the states as they are, e.g. a weighted sum of all layers."""
        self.compiled = self.rests = False
        self.aside = Aside()
        """Where the networks that act before the trunk are computed."""
        self.heads = nn.ModuleDict({one.name: self._made(one) for one in objectives})
        self.ahead = frozenset(one.name for one in objectives if isinstance(one, Ahead))
        """The objectives whose networks act before the trunk."""
        self.balance = make_balance(balance, objectives)

    def forward(self, batch: Batch, objectives: Sequence[Objective]) -> tuple[Term, ...]:
        """What acts ahead of the trunk, one pass through the trunk, then every other objective reads the states."""
        said: dict[str, Term] = {}
        for name in (one.name for one in objectives if one.name in self.ahead):
            said[name], batch = self.aside.done(self.heads[name], batch, self.trunk.parameters())
        heads = {one.name: self.heads[one.name] for one in objectives if one.name not in said}
        states = self.states(batch, _asked(heads.values(), batch))
        said |= {name: head(states, batch) for name, head in heads.items()}
        terms: tuple[Term, ...] = self.balance(tuple(said[one.name] for one in objectives), objectives)
        return terms

    def states(self, batch: Batch, asked: Sequence[Tensor] = ()) -> States:
        """What the heads read: the states that came with the batch, or those that the trunk makes of its tokens.

        `asked`: the places that they read after the last block, if not all; who mixes layers reads all.
        """
        if batch.states:
            states = States(batch.states)
        else:
            states = self.trunk(batch.tokens, asked if isinstance(self.mix, nn.Identity) else ())
        mixed: States = self.mix(states)
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
        return self.trunk.embed.positions

    def draw(self, seed: int) -> None:
        """Initial weights, the same for the same seed everywhere."""
        draw_weights(self, self.trunk.trunk.spread, torch.Generator().manual_seed(seed))

    def blocks(self) -> tuple[Block, ...]:
        """Every block of the trunk, and of the networks ahead of it."""
        return tuple(dict.fromkeys(block for network in self.networks() for block in network.blocks()))

    def networks(self) -> Iterator[Transformer]:
        """The trunk, and the networks ahead of it."""
        return (part for part in self.modules() if isinstance(part, Transformer))

    def spare(self, on: bool) -> None:
        """Let last blocks be computed only where somebody reads them, or everywhere."""
        for network in self.networks():
            network.sparing = on

    def compile_blocks(self) -> None:
        """Let torch compile every block when it first runs; names and weights stay as they are."""
        if not self.compiled:
            for block in self.blocks():
                block.compile(dynamic=True)
        self.compiled = True

    def network_parameters(self) -> Iterator[nn.Parameter]:
        """Every parameter but the weights of losses, whose gradient is as large as the losses are.

        The norm of a step and its clipping are about the network.
        """
        return (parameter for name, parameter in self.named_parameters() if not name.startswith("balance."))

    def weights(self) -> dict[str, Tensor]:
        """Every parameter once, by the first of its names. These are the live tensors, not copies."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def take_weights(self, saved: Mapping[str, Tensor]) -> None:
        """Copy saved parameters in; refuses what does not fit this network in name or shape."""
        take_weights(self, saved)

    def _made(self, objective: Taught) -> nn.Module:
        """The network of an objective that acts ahead of the trunk, or the head of any other."""
        if isinstance(objective, Ahead):
            return objective.network(self.trunk)
        return objective.head(self.trunk.trunk, self.trunk.embed.token)


def _asked(heads: Iterable[nn.Module], batch: Batch) -> tuple[Tensor, ...]:
    """The places that some heads read, each tensor once; nothing, if one of them reads all."""
    picks = [head.places(batch) if isinstance(head, Picks) else () for head in heads]
    return tuple({id(places): places for some in picks for places in some}.values()) if all(picks) else ()


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
