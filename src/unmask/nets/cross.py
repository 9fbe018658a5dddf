"""Cross-attention: the tokens of one flat batch look at those of another, sequence by sequence.

What arrives: states of a decoder, and a `Source`: states of an encoder, with borders on both sides. What leaves: what
each token of the decoder takes from its source. What never happens here: a look at the source of another sequence.

Shapes: T tokens that look, U tokens that are looked at, D width, H heads, K width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from unmask.nets.kept import Kept
from unmask.nets.layout import Borders
from unmask.nets.look import look
from unmask.nets.lowering import Lowering, chosen
from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class Source:
    """What is looked at. Sequence i of those that look sees all of sequence i of the source, and nothing else."""

    states_UD: Tensor
    borders: Borders
    lookers: Borders
    """Borders of the tokens that look."""


class Cross(nn.Module):
    """Multi-head attention from one batch to another, with merged key and value projections."""

    def __init__(self, trunk: Trunk, source: int) -> None:
        super().__init__()
        self.heads = trunk.heads
        self.dropout = trunk.attention_dropout
        self.lowering = Lowering.AUTO
        self.query = nn.Linear(trunk.width, trunk.width)
        self.kv = nn.Linear(source, 2 * trunk.width)
        self.out = nn.Linear(trunk.width, trunk.width)

    def forward(self, x_TD: Tensor, source: Source | Kept) -> Tensor:
        """Look at the source, or at what was kept of it."""
        q_THK = self.query(x_TD).view(len(x_TD), self.heads, -1)
        y_THK = source.look(q_THK) if isinstance(source, Kept) else self._attend(q_THK, source)
        out_TD: Tensor = self.out(y_THK.flatten(1))
        return out_TD

    def keys_values(self, states_UD: Tensor) -> Tensor:
        """What is seen of a source (U x 2 x H x K)."""
        kv_U2HK: Tensor = self.kv(states_UD).view(len(states_UD), 2, self.heads, -1)
        return kv_U2HK

    def _attend(self, q_THK: Tensor, source: Source) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        lowering = chosen(self.lowering, q_THK, dropout)
        return look(lowering, q_THK, self.keys_values(source.states_UD), source.lookers, source.borders, dropout)
