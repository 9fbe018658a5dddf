"""Transformer encoder: embeddings and a list of blocks; with a causal pattern also a decoder-only network.

Heads read few positions after the last block (15 % with masked language modelling). All tokens are needed there as keys
and values only, so queries and what follows attention are computed for the requested positions (`sparse_last_block`).

Shapes: T tokens, D width, P positions that heads read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unmask.config.network import Norm, TransformerConfig, WeightInit
from unmask.nets.backbone import Backbone
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds, PooledSeeds
from unmask.nets.layers.attention import SelfAttention
from unmask.nets.layers.block import Block, build_blocks
from unmask.nets.layers.cross_attention import CrossAttention
from unmask.nets.layers.embeddings import Embeddings
from unmask.nets.layers.norm import build_norm


@dataclass(frozen=True, slots=True)
class TokenInputs:
    """The inputs of a network: a flat batch of tokens."""

    ids_T: Tensor
    position_T: Tensor
    segment_T: Tensor
    sequences: PackedSequences


@dataclass(frozen=True, slots=True)
class HiddenStates:
    """The outputs of a network: the embeddings, then the states after each block."""

    layers: tuple[Tensor, ...]
    """Of all tokens; without the last layer, where only some of its positions are `requested`."""
    requested: tuple[tuple[Tensor, Tensor], ...] = ()
    """Positions, and the states there after the last block."""

    @property
    def last_TD(self) -> Tensor:
        """The states of all tokens after the last block."""
        assert not self.requested, "only some of the last states were computed"
        return self.layers[-1]

    def select(self, positions_P: Tensor) -> Tensor:
        """The states at some positions after the last block."""
        if not self.requested:
            return self.last_TD.index_select(0, positions_P)
        (found_PD,) = (x_PD for requested_P, x_PD in self.requested if requested_P is positions_P)
        return found_PD


class TransformerEncoder(Backbone):
    """Embeddings, blocks and, with pre-norm, a last norm."""

    config: TransformerConfig
    embed: Embeddings

    def __init__(self, config: TransformerConfig, vocab_size: int, max_positions: int) -> None:
        super().__init__()
        self.config = config
        self.sparse_last_block = True
        self.embed = Embeddings(config, vocab_size, max_positions)
        self.layers = nn.ModuleList(build_blocks(config))
        self.norm = build_norm(config, config.width) if config.norm is Norm.PRE else nn.Identity()

    def forward(self, tokens: TokenInputs, requested: Sequence[Tensor] = ()) -> HiddenStates:
        """Embed, then run all blocks. `requested`: the only positions that are read at the end; none means all."""
        seeds = self._dropout_seeds(tokens.ids_T)
        x_TD: Tensor = self.embed(tokens.ids_T, tokens.position_T, tokens.segment_T, seeds=seeds)
        layers = [x_TD]
        *blocks, last = self.blocks()
        for block in blocks:
            x_TD = block(x_TD, tokens.sequences, seeds=seeds)
            layers.append(x_TD)
        if not self.sparse_last_block or not 0 < sum(map(len, requested)) < len(x_TD):
            return HiddenStates((*layers, self.norm(last(x_TD, tokens.sequences, seeds=seeds))))
        positions_P, order_P = torch.cat(tuple(requested)).sort(stable=True)
        x_PD: Tensor = self.norm(last(x_TD, tokens.sequences, positions_P, seeds))
        parts = torch.split(torch.empty_like(x_PD).index_copy_(0, order_P, x_PD), [len(one) for one in requested])
        return HiddenStates(tuple(layers), tuple(zip(requested, parts, strict=True)))

    def _dropout_seeds(self, ids_T: Tensor) -> DropoutSeeds:
        """The dropout seeds of a pass, drawn at once where kernels take any."""
        counts = [
            *self.embed.dropout_seed_counts(),
            *(count for block in self.blocks() for count in block.dropout_seed_counts(len(ids_T))),
        ]
        return PooledSeeds.of(counts, ids_T.device) if counts else PER_CALL_SEEDS

    def blocks(self) -> Sequence[Block]:
        """Every block from the bottom up."""
        return [block for block in self.layers if isinstance(block, Block)]

    @property
    def token_embedding(self) -> nn.Embedding:
        """The token table."""
        return self.embed.token

    @property
    def max_positions(self) -> int:
        """The longest row that a learned position table serves; 0 where rows may have any length."""
        return self.embed.max_positions

    def require_encoder(self, purpose: str) -> TransformerEncoder:
        """This network itself."""
        return self

    @torch.no_grad()
    def rescale_init(self) -> None:
        """With `WeightInit.FAN_IN`: scale initial weights to the spread of T5."""
        rescale_to_fan_in(self, self.config)


def rescale_to_fan_in(network: nn.Module, config: TransformerConfig) -> None:
    """Scale weights drawn with `init_std` to T5's: 1 / sqrt(inputs), queries without a scale smaller, tables 1."""
    if config.init is not WeightInit.FAN_IN:
        return
    for part in network.modules():
        if isinstance(part, nn.Linear):
            part.weight.mul_(part.in_features**-0.5 / config.init_std)
        elif isinstance(part, nn.Embedding):
            part.weight.mul_(1.0 / config.init_std)
        if not config.scale_attention and isinstance(part, SelfAttention):
            part.qkv.weight[: config.qkv_width].mul_(part.head_width**-0.5)
        elif not config.scale_attention and isinstance(part, CrossAttention):
            part.query.weight.mul_((config.qkv_width // config.heads) ** -0.5)


def init_weights(module: nn.Module, init_std: float, generator: torch.Generator) -> None:
    """Initial weights as in BERT: a normal distribution cut at two deviations; biases 0, norms 1 and 0.

    Parameters are visited in the order of their names, each once, so the same seed gives the same network everywhere.
    """
    with torch.no_grad():
        for name, parameter in sorted(module.named_parameters()):
            if parameter.dim() >= 2:
                nn.init.trunc_normal_(parameter, 0.0, init_std, -2 * init_std, 2 * init_std, generator=generator)
            elif name.endswith("norm.weight"):
                parameter.fill_(1.0)
            else:
                parameter.zero_()


def num_parameters(module: nn.Module) -> int:
    """The number of parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in module.parameters())
