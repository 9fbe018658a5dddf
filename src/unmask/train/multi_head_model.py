"""The model that is trained: a backbone with the heads of its objectives, as one module that is wrapped once.

The forward pass of a batch gives a sum of losses for each objective of its task. A network that rewrites the inputs
(ELECTRA's generator) runs first, and everything else reads the batch that it returns. The losses are weighted by fixed
weights, or by weights that are learned with the network.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from unmask.config.network import NetworkConfig
from unmask.config.optim import LossWeighting
from unmask.core.errors import InputError, RecipeError
from unmask.nets.backbone import Backbone
from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import HiddenStates, init_weights
from unmask.nets.layers.block import Block
from unmask.objectives.heads.common import LossSum, ReadsPositions
from unmask.objectives.protocol import Objective
from unmask.train.gpu_async import SideStream
from unmask.train.segment_memory import MemorySlot


class MultiHeadModel(nn.Module):
    """A backbone and a head for every objective; tasks that learn the same objective share its head."""

    def __init__(
        self,
        config: NetworkConfig,
        objectives: Sequence[Objective],
        vocab_size: int,
        max_positions: int,
        loss_weighting: LossWeighting = LossWeighting.FIXED,
    ) -> None:
        super().__init__()
        self.network: Backbone = config.build(vocab_size, max_positions)
        self.layer_mix: nn.Module = nn.Identity()
        """Applied to the hidden states before heads read them, e.g. a weighted sum of all layers."""
        self.compiled = self.frozen = False
        self.generator_stream = SideStream()
        """The CUDA stream of the networks that rewrite inputs."""
        self.heads = nn.ModuleDict({one.name: self._build_head(one) for one in objectives})
        self.generator_names = frozenset(one.name for one in objectives if one.rewrites_inputs)
        """The objectives whose networks rewrite the inputs."""
        self.balance = build_loss_weighting(loss_weighting, objectives)

    def forward(
        self, batch: Batch, objectives: Sequence[Objective], memory: MemorySlot | None = None
    ) -> tuple[LossSum, ...]:
        """The networks that rewrite inputs, one pass of the backbone, then the heads of all other objectives."""
        losses: dict[str, LossSum] = {}
        for name in (one.name for one in objectives if one.name in self.generator_names):
            losses[name], batch = self.generator_stream.run(self.heads[name], batch, self.network.parameters())
        heads = {one.name: self.heads[one.name] for one in objectives if one.name not in losses}
        states = self.states(batch, _requested_positions(heads.values(), batch), memory)
        losses |= {name: head(states, batch) for name, head in heads.items()}
        terms: tuple[LossSum, ...] = self.balance(tuple(losses[one.name] for one in objectives), objectives)
        return terms

    def states(self, batch: Batch, positions: Sequence[Tensor] = (), memory: MemorySlot | None = None) -> HiddenStates:
        """The hidden states that heads read: cached ones of the batch, or those of the backbone.

        `positions`: the only ones that are read after the last block; a mix of layers reads all.
        """
        if batch.cached_states:
            states = HiddenStates(batch.cached_states)
        elif memory is None:
            states = self.network(batch.tokens, positions if isinstance(self.layer_mix, nn.Identity) else ())
        else:
            states = self.network(batch.tokens, memory=memory.memory)
            memory.update(states, batch)
        mixed: HiddenStates = self.layer_mix(states)
        return mixed

    def freeze_encoder(self) -> None:
        """Freeze the backbone: no dropout and no gradient from now on; only the heads are trained."""
        self.frozen = True
        self.network.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> MultiHeadModel:
        """As any module; a frozen backbone stays in evaluation mode."""
        super().train(mode)
        if self.frozen:
            self.network.eval()
        return self

    @property
    def vocab_size(self) -> int:
        """The number of rows of the token embedding."""
        return self.network.vocab_size

    @property
    def max_positions(self) -> int:
        """The longest row that a learned position table serves; 0 where rows may have any length."""
        return self.network.max_positions

    def init_weights(self, seed: int) -> None:
        """Initial weights, the same for the same seed everywhere."""
        init_weights(self, self.network.config.init_std, torch.Generator().manual_seed(seed))
        self.network.rescale_init()

    def blocks(self) -> tuple[Block, ...]:
        """Every Transformer block of every network and head, decoder blocks included: compiled, and updated by Muon."""
        return tuple(part for part in self.modules() if isinstance(part, Block))

    def networks(self) -> Iterator[Backbone]:
        """The backbone, the networks inside it and those that rewrite inputs."""
        return (part for part in self.modules() if isinstance(part, Backbone))

    def set_sparse_last_block(self, on: bool) -> None:
        """Compute last blocks at the positions that heads read, or everywhere."""
        for network in self.networks():
            network.sparse_last_block = on

    def compile_blocks(self) -> None:
        """Let torch compile every block at its first call; names and weights do not change."""
        if not self.compiled:
            for block in self.blocks():
                block.compile(dynamic=True)
        self.compiled = True

    def network_parameters(self) -> Iterator[nn.Parameter]:
        """Every parameter but learned loss weights, which gradient norm and gradient clipping leave out."""
        return (parameter for name, parameter in self.named_parameters() if not name.startswith("balance."))

    def named_weights(self) -> dict[str, Tensor]:
        """Every parameter once, by the first of its names. These are the live tensors, not copies."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def load_weights(self, saved: Mapping[str, Tensor]) -> None:
        """Copy saved parameters in; refuses what does not fit this network in name or shape."""
        load_weights(self, saved)

    def _build_head(self, objective: Objective) -> nn.Module:
        """The network of an objective that rewrites inputs, or the head of any other."""
        if objective.rewrites_inputs:
            return objective.build_network(self.network)
        return objective.build_head(self.network)


def _requested_positions(heads: Iterable[nn.Module], batch: Batch) -> tuple[Tensor, ...]:
    """The positions that heads read, each tensor once; none if a head reads all."""
    requests = [head.positions(batch) if isinstance(head, ReadsPositions) else () for head in heads]
    return tuple({id(one_P): one_P for some in requests for one_P in some}.values()) if all(requests) else ()


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


class FixedWeights(nn.Module):
    """The weights that the objectives bring along."""

    def forward(self, terms: tuple[LossSum, ...], objectives: Sequence[Objective]) -> tuple[LossSum, ...]:
        """The terms as they are."""
        return terms

    def weights(self, objectives: Sequence[Objective]) -> Sequence[float]:
        """One for each objective."""
        return [one.weight for one in objectives]

    def regularizer(self, objectives: Sequence[Objective]) -> float:
        """What is fixed costs nothing."""
        return 0.0

    def current_weights(self, objectives: Sequence[Objective]) -> Tensor:
        """None of them."""
        return torch.zeros(0)


class UncertaintyWeights(nn.Module):
    """Learned loss weights (Kendall, Gal and Cipolla, 2018), which start from the weights of the objectives.

    Each objective has an uncertainty s; the sum of exp(-s) * loss + s / 2 is minimized. Without s / 2 the best weight
    would be 0. The parameters are the changes of s since the start, so their initial values are zeros.
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        super().__init__()
        for one in objectives:
            if one.weight <= 0:
                raise RecipeError(
                    f"A learned balance begins with the weights of the objectives, so they must be above 0; found "
                    f"{one.weight:g} for '{one.name}'. Give it a weight, or take loss_weighting=fixed."
                )
        self.moved = nn.ParameterDict({one.name: nn.Parameter(torch.zeros(())) for one in objectives})

    def forward(self, terms: tuple[LossSum, ...], objectives: Sequence[Objective]) -> tuple[LossSum, ...]:
        """The terms as they are, with their weights in their graph.

        Processes that share a network look there for the parameters that a step uses.
        """
        pairs = zip(terms, objectives, strict=True)
        return tuple(replace(term, total=term.total + 0.0 * self.moved[one.name]) for term, one in pairs)

    def weights(self, objectives: Sequence[Objective]) -> Sequence[Tensor]:
        """One for each objective: exp(-s)."""
        return [one.weight * torch.exp(-self.moved[one.name]) for one in objectives]

    def regularizer(self, objectives: Sequence[Objective]) -> Tensor:
        """The sum of s / 2 over the objectives that were asked anything. It belongs to a step, not to an answer."""
        return torch.stack([self.moved[one.name] - math.log(one.weight) for one in objectives]).sum() / 2

    def current_weights(self, objectives: Sequence[Objective]) -> Tensor:
        """The weights now, on the device."""
        return torch.stack(list(self.weights(objectives))).detach()


def build_loss_weighting(
    weighting: LossWeighting, objectives: Sequence[Objective]
) -> FixedWeights | UncertaintyWeights:
    """The module for a choice of a recipe."""
    return UncertaintyWeights(objectives) if weighting is LossWeighting.LEARNED else FixedWeights()
