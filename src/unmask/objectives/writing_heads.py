"""Heads that write: what `writing.py` declares, as modules.

What arrives: the last states of a flat batch, and the texts to be written. What leaves: a `Term`.
What never happens here: logits for tokens of the source.

Shapes: P tokens of all texts, B rows, T tokens of the batch, D width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import replace

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.nets.answers import ContinueAnswers, RewriteAnswers
from unmask.nets.batch import Batch
from unmask.nets.cross import Source
from unmask.nets.decoder import Decoder
from unmask.nets.heads import TokenHead
from unmask.nets.transformer import States
from unmask.nets.trunk import Trunk
from unmask.objectives.heads import Term
from unmask.objectives.writing import Write


class SayNext(nn.Module):
    """The token that follows each of some positions."""

    def __init__(self, trunk: Trunk, token: nn.Embedding, smoothing: float = 0.0) -> None:
        super().__init__()
        self.smoothing = smoothing
        self.tokens = TokenHead(trunk, token)

    def forward(self, states: States, batch: Batch) -> Term:
        """The loss of a continuation."""
        (told,) = (some for some in batch.answers if isinstance(some, ContinueAnswers))
        logits_PV = self.tokens(states.last_TD[told.positions_P])
        return written(logits_PV, told.answers_P, self.smoothing if self.training else 0.0)


class SayText(nn.Module):
    """The text of each row, by a decoder. It begins with the token that the row begins with."""

    def __init__(self, trunk: Trunk, token: nn.Embedding, how: Write) -> None:
        super().__init__()
        self.smoothing = how.smoothing
        shape = replace(trunk, depth=how.depth or trunk.depth, groups=1, cycle=1)  # any depth, so one set if they share
        self.decoder = Decoder(shape, token, how.positions, trunk.width)

    def forward(self, states: States, batch: Batch) -> Term:
        """The loss of a rewriting. Rows after those that it is about belong to others."""
        (told,) = (some for some in batch.answers if isinstance(some, RewriteAnswers))
        source = Source(states.last_TD[: len(told.source.place_T)], told.source, told.borders)
        shown_P = shifted(told, batch)
        x_PD = self.decoder(shown_P, told.position_P, told.borders, source)
        return written(self.decoder.logits(x_PD), told.ids_P, self.smoothing if self.training else 0.0)


def shifted(told: RewriteAnswers, batch: Batch) -> Tensor:
    """What a decoder is shown while it learns: the token before each, and at first the one that begins the row."""
    begin_B = told.borders.offsets_S1[:-1].long()
    return told.ids_P.roll(1).index_copy(0, begin_B, batch.tokens.ids_T[batch.first_B[: len(begin_B)]])


def written(logits_PV: Tensor, answers_P: Tensor, smoothing: float) -> Term:
    """Cross-entropy, summed in float32. Some of the truth may be spread over the vocabulary (Szegedy et al., 2016)."""
    total = F.cross_entropy(logits_PV.float(), answers_P, reduction="sum", label_smoothing=smoothing)
    return Term(total, (logits_PV.argmax(-1) == answers_P).sum(), len(answers_P))
