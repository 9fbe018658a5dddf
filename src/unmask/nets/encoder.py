"""The Transformer: embeddings and a list of blocks.

What arrives: a flat batch of tokens with borders; and which of them are read at the end, if not all. What leaves:
`States`, one tensor after each layer.
What never happens here: a loss. Objectives read the states.

Nobody reads most tokens of a cloze after the last block: of it, only keys and values are needed of all of them. So
queries, and what follows attention, are computed for the tokens that are asked for (`Transformer.sparing`).

Shapes: T tokens, D width, P places that somebody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unmask.config.network import Norm, TransformerConfig
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds, PooledSeeds
from unmask.nets.layers.block import Block, build_blocks
from unmask.nets.layers.embeddings import Embeddings


@dataclass(frozen=True, slots=True)
class TokenInputs:
    """What a network is shown: a flat batch of tokens."""

    ids_T: Tensor
    position_T: Tensor
    segment_T: Tensor
    sequences: PackedSequences


@dataclass(frozen=True, slots=True)
class HiddenStates:
    """What a network makes of a batch: the embeddings, then the states after each block."""

    layers: tuple[Tensor, ...]
    """Of all tokens; without the last ones, where only some are `asked` for."""
    requested: tuple[tuple[Tensor, Tensor], ...] = ()
    """Places, and the states there after the last block."""

    @property
    def last_TD(self) -> Tensor:
        """The states of all tokens after the last block."""
        assert not self.requested, "only some of the last states were computed"
        return self.layers[-1]

    def select(self, positions_P: Tensor) -> Tensor:
        """The states at some places after the last block."""
        if not self.requested:
            return self.last_TD.index_select(0, positions_P)
        (found_PD,) = (x_PD for places, x_PD in self.requested if places is positions_P)
        return found_PD


class TransformerEncoder(nn.Module):
    """An encoder in the shape of a trunk."""

    def __init__(self, config: TransformerConfig, vocab_size: int, max_positions: int) -> None:
        super().__init__()
        self.config = config
        self.sparse_last_block = True
        """Whether the last block is computed only where it is read, but for what attention reads of all tokens."""
        self.embed = Embeddings(config, vocab_size, max_positions)
        self.layers = nn.ModuleList(build_blocks(config))
        self.norm = nn.LayerNorm(config.width, config.norm_eps) if config.norm is Norm.PRE else nn.Identity()

    def forward(self, tokens: TokenInputs, requested: Sequence[Tensor] = ()) -> HiddenStates:
        """Embed, then run through all blocks. `asked`: the places that are read at the end; none means all tokens."""
        seeds = self._dropout_seeds(tokens.ids_T)
        x_TD: Tensor = self.embed(tokens.ids_T, tokens.position_T, tokens.segment_T, seeds=seeds)
        layers = [x_TD]
        *blocks, last = self.blocks()
        for block in blocks:
            x_TD = block(x_TD, tokens.sequences, seeds=seeds)
            layers.append(x_TD)
        if not self.sparse_last_block or not 0 < sum(map(len, requested)) < len(x_TD):
            return HiddenStates((*layers, self.norm(last(x_TD, tokens.sequences, seeds=seeds))))
        places_P, turn_P = torch.cat(tuple(requested)).sort(stable=True)
        x_PD: Tensor = self.norm(last(x_TD, tokens.sequences, places_P, seeds))
        parts = torch.split(torch.empty_like(x_PD).index_copy_(0, turn_P, x_PD), [len(one) for one in requested])
        return HiddenStates(tuple(layers), tuple(zip(requested, parts, strict=True)))

    def _dropout_seeds(self, ids_T: Tensor) -> DropoutSeeds:
        """The random numbers of a pass: at once, where kernels ask for any."""
        asked = [
            *self.embed.dropout_seed_counts(),
            *(count for block in self.blocks() for count in block.dropout_seed_counts(len(ids_T))),
        ]
        return PooledSeeds.of(asked, ids_T.device) if asked else PER_CALL_SEEDS

    def blocks(self) -> Sequence[Block]:
        """The one list used for sharding, checkpointing, layer-wise rates, gradual unfreezing and adapters."""
        return [block for block in self.layers if isinstance(block, Block)]


def init_weights(module: nn.Module, init_std: float, generator: torch.Generator) -> None:
    """Initial weights as in BERT: a normal law cut at two deviations; biases 0, norms 1 and 0.

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
