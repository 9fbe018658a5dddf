"""The Transformer encoder: embeddings and a list of blocks, for one stream of states or several.

Most tokens of a cloze are not read after the last block: of them only keys and values are needed there. So queries, and
what follows attention, are computed for the requested positions alone (`TransformerEncoder.sparse_last_block`).

Several streams run through the same blocks: in each layer the queries of a stream come from its own states, its keys
and values from the states of the stream that it reads. With a memory, each block also reads the states that it read at
earlier tokens of the same text.

Shapes: T tokens, D width, P requested positions, S sequences, M states of a memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unmask.config.network import Norm, TransformerConfig, WeightInit
from unmask.nets.backbone import Backbone
from unmask.nets.batch.packed_sequences import PackedSequences, pad
from unmask.nets.kernels.dropout_seeds import PER_CALL_SEEDS, DropoutSeeds, PooledSeeds
from unmask.nets.layers.attention import KeyContext, SelfAttention
from unmask.nets.layers.block import Block, build_blocks
from unmask.nets.layers.cross_attention import CrossAttention
from unmask.nets.layers.embeddings import Embeddings
from unmask.nets.layers.norm import build_norm


@dataclass(frozen=True, slots=True)
class StreamInputs:
    """One stream of an attention pattern in a batch."""

    name: str
    reads_from: int
    """The number of the stream whose states are its keys and values."""
    is_blank: bool
    """Whether it starts from one learned vector and its positions, not from tokens."""
    sequences: PackedSequences


@dataclass(frozen=True, slots=True)
class TokenInputs:
    """The inputs of a network: a flat batch of tokens."""

    ids_T: Tensor
    position_T: Tensor
    segment_T: Tensor
    sequences: PackedSequences
    streams: tuple[StreamInputs, ...] = ()
    """The streams of the pattern; empty where there is one, under the mask of `sequences`."""


@dataclass(frozen=True, slots=True)
class HiddenStates:
    """The embeddings, then the states after each block. Of several streams these are the first's; `stream` has all."""

    layers: tuple[Tensor, ...]
    """Of all tokens; without the last ones, where only some positions are `requested`."""
    requested: tuple[tuple[Tensor, Tensor], ...] = ()
    """Positions, and the states there after the last block."""
    streams: tuple[tuple[str, tuple[Tensor, ...]], ...] = ()
    """By name; empty where there is one stream."""

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

    def stream(self, name: str) -> HiddenStates:
        """The states of one stream: what a head reads whose objective names it in its prediction sites."""
        if not self.streams:
            return self
        return HiddenStates(dict(self.streams)[name])


@dataclass(frozen=True, slots=True)
class EncoderMemory:
    """States of earlier tokens in front of each sequence: for each block its input then, without gradient."""

    layers_SMD: tuple[Tensor, ...]
    valid_SM: Tensor
    """Which of them exist; a memory that is still short fills the end."""

    @staticmethod
    def empty(
        config: TransformerConfig, sequences: int, size: int, device: torch.device | str = "cpu"
    ) -> EncoderMemory:
        """Room for `size` states of each sequence, none of which exists yet."""
        layers = tuple(torch.zeros(sequences, size, config.width, device=device) for _ in range(config.depth))
        return EncoderMemory(layers, torch.zeros(sequences, size, dtype=torch.bool, device=device))

    def extended(self, states: HiddenStates, sequences: PackedSequences) -> EncoderMemory:
        """The memory after these tokens: the last states of each sequence, as many as before."""
        size, lengths_S1 = self.valid_SM.shape[1], sequences.cu_seqlens_S1.diff()[:, None]
        index_SM = torch.arange(size, device=lengths_S1.device) + lengths_S1
        layers = []
        for old_SMD, x_TD in zip(self.layers_SMD, states.layers, strict=False):
            all_SLD = torch.cat([old_SMD, pad(x_TD.detach(), sequences).to(old_SMD.dtype)], 1)
            layers.append(all_SLD.gather(1, index_SM[..., None].expand(-1, -1, x_TD.shape[-1])))
        valid_SM = torch.cat([self.valid_SM, sequences.valid_SL()], 1).gather(1, index_SM)
        return EncoderMemory(tuple(layers), valid_SM)

    def reset(self, continues_S: Tensor) -> EncoderMemory:
        """Without the states of sequences that do not continue their predecessor."""
        return EncoderMemory(self.layers_SMD, self.valid_SM & continues_S[:, None])


class TransformerEncoder(Backbone):
    """Embeddings, blocks and, with pre-norm, a last norm."""

    config: TransformerConfig
    embed: Embeddings

    def __init__(self, config: TransformerConfig, vocab_size: int, max_positions: int) -> None:
        super().__init__()
        self.config = config
        self.sparse_last_block, self.memory_length = True, config.memory_length
        self.embed = Embeddings(config, vocab_size, max_positions)
        self.layers = nn.ModuleList(build_blocks(config))
        self.norm = build_norm(config, config.width) if config.norm is Norm.PRE else nn.Identity()

    def forward(
        self, tokens: TokenInputs, requested: Sequence[Tensor] = (), memory: EncoderMemory | None = None
    ) -> HiddenStates:
        """Embed, then run through all blocks. `requested`: the positions that are read at the end; none means all."""
        seeds = self._dropout_seeds(tokens)
        if tokens.streams:
            return self._forward_streams(tokens, seeds, memory)
        x_TD: Tensor = self.embed(tokens.ids_T, tokens.position_T, tokens.segment_T, seeds=seeds)
        layers = [x_TD]
        *blocks, last = self.blocks()
        for number, block in enumerate(blocks):
            x_TD = block(x_TD, _context(tokens.sequences, memory, number), seeds=seeds)
            layers.append(x_TD)
        context = _context(tokens.sequences, memory, len(blocks))
        if not self.sparse_last_block or not 0 < sum(map(len, requested)) < len(x_TD):
            return HiddenStates((*layers, self.norm(last(x_TD, context, seeds=seeds))))
        places_P, turn_P = torch.cat(tuple(requested)).sort(stable=True)
        x_PD: Tensor = self.norm(last(x_TD, context, places_P, seeds))
        parts = torch.split(torch.empty_like(x_PD).index_copy_(0, turn_P, x_PD), [len(one) for one in requested])
        return HiddenStates(tuple(layers), tuple(zip(requested, parts, strict=True)))

    def _forward_streams(self, tokens: TokenInputs, seeds: DropoutSeeds, memory: EncoderMemory | None) -> HiddenStates:
        """All streams, layer by layer; each reads states of the layer before."""
        ids = tokens.ids_T, tokens.position_T, tokens.segment_T
        states: list[Tensor] = [self.embed(*ids, is_blank=one.is_blank, seeds=seeds) for one in tokens.streams]
        layers = [[x_TD] for x_TD in states]
        for number, block in enumerate(self.blocks()):
            contexts = [_stream_context(one, states, memory, number) for one in tokens.streams]
            states = [block(x_TD, around, seeds=seeds) for x_TD, around in zip(states, contexts, strict=True)]
            for kept, x_TD in zip(layers, states, strict=True):
                kept.append(x_TD)
        for kept in layers:
            kept[-1] = self.norm(kept[-1])
        named = tuple((one.name, tuple(kept)) for one, kept in zip(tokens.streams, layers, strict=True))
        return HiddenStates(named[0][1], streams=named)

    def _dropout_seeds(self, tokens: TokenInputs) -> DropoutSeeds:
        """The dropout seeds of a pass, drawn at once where kernels take any."""
        ids_T = tokens.ids_T
        counts = [
            *self.embed.dropout_seed_counts(),
            *(count for block in self.blocks() for count in block.dropout_seed_counts(len(ids_T))),
        ]
        return PooledSeeds.of(counts * max(len(tokens.streams), 1), ids_T.device) if counts else PER_CALL_SEEDS

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

    def empty_memory(self, num_rows: int, device: torch.device | str = "cpu") -> EncoderMemory:
        """Room for `memory_length` states of each row and layer, none of which exists yet."""
        return EncoderMemory.empty(self.config, num_rows, self.memory_length, device)

    def require_encoder(self, purpose: str) -> TransformerEncoder:
        """The network itself."""
        return self

    @torch.no_grad()
    def rescale_init(self) -> None:
        """Scale initial weights to the spread of T5 (`FAN_IN`) or of GPT-2 (`SCALED_RESIDUAL`)."""
        rescale_to_fan_in(self, self.config)
        if self.config.init is WeightInit.SCALED_RESIDUAL:
            outputs = {id(one.weight): one.weight for block in self.blocks() for one in block.output_layers()}
            for weight in outputs.values():  # shared ones once
                weight.mul_((2 * self.config.depth) ** -0.5)
            if isinstance(self.embed.position, nn.Embedding):
                self.embed.position.weight.mul_(0.5)


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


def _context(sequences: PackedSequences, memory: EncoderMemory | None, layer: int) -> PackedSequences | KeyContext:
    """What a block attends to."""
    if memory is None:
        return sequences
    return KeyContext(sequences, memory_SMD=memory.layers_SMD[layer], memory_valid_SM=memory.valid_SM)


def _stream_context(
    stream: StreamInputs, states: Sequence[Tensor], memory: EncoderMemory | None, layer: int
) -> KeyContext:
    """What a block attends to for one of several streams. A memory is of the first stream."""
    own = states[stream.reads_from]
    if memory is None:
        return KeyContext(stream.sequences, own)
    return KeyContext(stream.sequences, own, memory.layers_SMD[layer], memory.valid_SM)


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
