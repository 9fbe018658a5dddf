"""Bidirectional LSTM language model: two independent stacks over one token table (Peters et al., 2018, ELMo).

The stacks never mix, so that the state of a direction at a token depends on one side of it alone; the right-to-left
stack runs left to right over reversed sequences. Layers after the first add their input (residual connection). Cells
are projected after every step. The paper also clips cells and projections at 3, which torch's LSTM does not offer.

Shapes: T tokens, S sequences, L the longest, W width of one direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from warnings import catch_warnings, filterwarnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.attention_pattern import Causal
from unmask.config.network import LSTMConfig
from unmask.nets.backbone import Backbone
from unmask.nets.batch.packed_sequences import PackedSequences, pad, unpad
from unmask.nets.encoder import HiddenStates, TokenInputs


class LSTMLayer(nn.Module):
    """One layer of both directions."""

    def __init__(self, config: LSTMConfig, residual: bool) -> None:
        super().__init__()
        self.residual = residual
        sizes = config.direction_width, config.cell_width
        self.left_to_right = nn.LSTM(*sizes, proj_size=config.direction_width, batch_first=True)
        self.right_to_left = nn.LSTM(*sizes, proj_size=config.direction_width, batch_first=True)

    def forward(self, forward_TW: Tensor, backward_TW: Tensor, sequences: PackedSequences) -> tuple[Tensor, Tensor]:
        """The states of each direction; those of the right-to-left stack are in reversed order, as its input."""
        after = self._run(self.left_to_right, forward_TW, sequences)
        before = self._run(self.right_to_left, backward_TW, sequences)
        return (after + forward_TW, before + backward_TW) if self.residual else (after, before)

    @staticmethod
    def _run(lstm: nn.LSTM, x_TW: Tensor, sequences: PackedSequences) -> Tensor:
        with catch_warnings():
            filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")
            y_SLW, _ = lstm(pad(x_TW, sequences))  # padding follows the tokens, so it changes no state that is read
        return unpad(y_SLW, sequences)


class BidirectionalLSTM(Backbone):
    """A token table and two independent stacks of LSTM layers; states hold both directions side by side."""

    config: LSTMConfig

    def __init__(self, config: LSTMConfig, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(vocab_size, config.direction_width)
        self.layers = nn.ModuleList(LSTMLayer(config, residual=layer > 0) for layer in range(config.depth))

    def forward(self, tokens: TokenInputs, requested: Sequence[Tensor] = ()) -> HiddenStates:
        """The token vectors twice, then the states after each layer; a stream has those of its direction alone."""
        reverse_T = reversed_order(tokens.sequences)
        x_TW: Tensor = self.embed(tokens.ids_T)
        ahead_TW, back_TW = x_TW, x_TW[reverse_T]
        ahead, back = [x_TW], [x_TW]
        for layer in self.layers:
            ahead_TW, back_TW = layer(self._dropout(ahead_TW), self._dropout(back_TW), tokens.sequences)
            ahead.append(ahead_TW)
            back.append(back_TW[reverse_T])
        both = tuple(torch.cat(pair, dim=-1) for pair in zip(ahead, back, strict=True))
        streams = [
            (one.name, tuple(ahead if isinstance(one.sequences.rule, Causal) else back)) for one in tokens.streams
        ]
        return HiddenStates(both, streams=tuple(streams))

    def blocks(self) -> Sequence[nn.Module]:
        """Every layer from the bottom up."""
        return list(self.layers)

    @property
    def token_embedding(self) -> nn.Embedding:
        """The token table."""
        assert isinstance(self.embed, nn.Embedding)
        return self.embed

    def _dropout(self, x_TW: Tensor) -> Tensor:
        return F.dropout(x_TW, self.config.dropout, self.training)


def reversed_order(sequences: PackedSequences) -> Tensor:
    """For each token the index of the token at the same distance from the other end of its sequence."""
    borders = sequences.cu_seqlens_S1.long()
    token_T = torch.arange(len(sequences.padded_index_T), device=borders.device)
    sequence_T = torch.searchsorted(borders, token_T, right=True) - 1
    return borders[sequence_T] + borders[sequence_T + 1] - 1 - token_T
