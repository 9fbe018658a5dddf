"""The learner: a trunk with the heads of its objectives, as one module that is wrapped once.

What arrives: a flat batch. What leaves: one `Term` for each objective of the task. A network that acts ahead of the
trunk comes first, and everything else reads the batch that it leaves.
What never happens here: a weighted sum. Weights and counts are the loop's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from unmask.config.network import TransformerConfig
from unmask.config.optim import LossWeighting
from unmask.core.errors import InputError
from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import HiddenStates, TransformerEncoder, init_weights
from unmask.nets.layers.block import Block
from unmask.objectives.heads.common import LossSum, ReadsPositions
from unmask.objectives.protocol import InputRewriter, Objective, Trainable
from unmask.train.gpu.side_stream import SideStream
from unmask.train.optim.loss_weighting import build_loss_weighting


class MultiHeadModel(nn.Module):
    """A Transformer and a head for every objective, each made once even if several tasks learn it."""

    def __init__(
        self,
        config: TransformerConfig,
        objectives: Sequence[Trainable],
        vocab_size: int,
        max_positions: int,
        loss_weighting: LossWeighting = LossWeighting.FIXED,
    ) -> None:
        super().__init__()
        self.network = TransformerEncoder(config, vocab_size, max_positions)
        self.layer_mix: nn.Module = nn.Identity()
        """What the heads read instead of the states as they are, e.g. a weighted sum of all layers."""
        self.compiled = self.frozen = False
        self.generator_stream = SideStream()
        """Where the networks that act before the trunk are computed."""
        self.heads = nn.ModuleDict({one.name: self._build_head(one) for one in objectives})
        self.generator_names = frozenset(one.name for one in objectives if isinstance(one, InputRewriter))
        """The objectives whose networks act before the trunk."""
        self.balance = build_loss_weighting(loss_weighting, objectives)

    def forward(self, batch: Batch, objectives: Sequence[Objective]) -> tuple[LossSum, ...]:
        """What acts ahead of the trunk, one pass through the trunk, then every other objective reads the states."""
        said: dict[str, LossSum] = {}
        for name in (one.name for one in objectives if one.name in self.generator_names):
            said[name], batch = self.generator_stream.run(self.heads[name], batch, self.network.parameters())
        heads = {one.name: self.heads[one.name] for one in objectives if one.name not in said}
        states = self.states(batch, _requested_positions(heads.values(), batch))
        said |= {name: head(states, batch) for name, head in heads.items()}
        terms: tuple[LossSum, ...] = self.balance(tuple(said[one.name] for one in objectives), objectives)
        return terms

    def states(self, batch: Batch, positions: Sequence[Tensor] = ()) -> HiddenStates:
        """What the heads read: the states that came with the batch, or those that the trunk makes of its tokens.

        `asked`: the places that they read after the last block, if not all; who mixes layers reads all.
        """
        if batch.cached_states:
            states = HiddenStates(batch.cached_states)
        else:
            states = self.network(batch.tokens, positions if isinstance(self.layer_mix, nn.Identity) else ())
        mixed: HiddenStates = self.layer_mix(states)
        return mixed

    def freeze_encoder(self) -> None:
        """Let the trunk stay as it is from now on: no dropout, no gradient; only what stands on it learns."""
        self.frozen = True
        self.network.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> MultiHeadModel:
        """As any module; a trunk at rest stays at rest."""
        super().train(mode)
        if self.frozen:
            self.network.eval()
        return self

    @property
    def vocab_size(self) -> int:
        """The number of rows of the token embedding."""
        return self.network.embed.token.num_embeddings

    @property
    def max_positions(self) -> int:
        """The longest row that the position embedding has a place for; 0 where positions are not learned."""
        return self.network.embed.max_positions

    def init_weights(self, seed: int) -> None:
        """Initial weights, the same for the same seed everywhere."""
        init_weights(self, self.network.config.init_std, torch.Generator().manual_seed(seed))

    def blocks(self) -> tuple[Block, ...]:
        """Every block of the trunk, and of the networks ahead of it."""
        return tuple(dict.fromkeys(block for network in self.networks() for block in network.blocks()))

    def networks(self) -> Iterator[TransformerEncoder]:
        """The trunk, and the networks ahead of it."""
        return (part for part in self.modules() if isinstance(part, TransformerEncoder))

    def set_sparse_last_block(self, on: bool) -> None:
        """Let last blocks be computed only where somebody reads them, or everywhere."""
        for network in self.networks():
            network.sparse_last_block = on

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

    def named_weights(self) -> dict[str, Tensor]:
        """Every parameter once, by the first of its names. These are the live tensors, not copies."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def load_weights(self, saved: Mapping[str, Tensor]) -> None:
        """Copy saved parameters in; refuses what does not fit this network in name or shape."""
        load_weights(self, saved)

    def _build_head(self, objective: Trainable) -> nn.Module:
        """The network of an objective that acts ahead of the trunk, or the head of any other."""
        if isinstance(objective, InputRewriter):
            return objective.build_network(self.network)
        return objective.build_head(self.network.config, self.network.embed.token)


def _requested_positions(heads: Iterable[nn.Module], batch: Batch) -> tuple[Tensor, ...]:
    """The places that some heads read, each tensor once; nothing, if one of them reads all."""
    picks = [head.positions(batch) if isinstance(head, ReadsPositions) else () for head in heads]
    return tuple({id(places): places for some in picks for places in some}.values()) if all(picks) else ()


@torch.no_grad()
def load_weights(network: nn.Module, saved: Mapping[str, Tensor]) -> None:
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
