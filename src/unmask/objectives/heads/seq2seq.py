"""Heads that write: what `writing.py` declares, as modules.

What arrives: the last states of a flat batch, and the texts to be written. What leaves: a `Term`.
What never happens here: logits for tokens of the source.

Shapes: P tokens of all texts, B rows, T tokens of the batch, D width, V vocabulary.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import NetworkValues
from unmask.core.records import ContinuationTarget, DecoderTarget
from unmask.nets.backbone import Backbone
from unmask.nets.batch.batch import Batch
from unmask.nets.decoder import Decoder
from unmask.nets.encoder import HiddenStates
from unmask.nets.layers.cross_attention import EncoderOutput
from unmask.nets.layers.heads import LMHead
from unmask.objectives.heads.common import LossSum
from unmask.objectives.seq2seq import Seq2SeqObjective


class CausalLMHead(nn.Module):
    """The token that follows each of some positions."""

    def __init__(self, config: NetworkValues, token: nn.Embedding, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.label_smoothing = label_smoothing
        self.lm_head = LMHead(config, token)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The loss of a continuation."""
        told = batch.target(ContinuationTarget)
        logits_PV = self.lm_head(states.last_TD[told.positions])
        return smoothed_cross_entropy(logits_PV, told.answers, self.label_smoothing if self.training else 0.0)


class Seq2SeqHead(nn.Module):
    """The text of each row, by a decoder. It begins with the token that the row begins with."""

    def __init__(self, backbone: Backbone, objective: Seq2SeqObjective) -> None:
        super().__init__()
        self.label_smoothing = objective.label_smoothing
        self.decoder = backbone.own_decoder() or _build_decoder(backbone, objective)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The loss of a rewriting. Rows after those that it is about belong to others."""
        told = batch.target(DecoderTarget)
        (shown,) = batch.decoder
        sequences = shown.tokens.sequences
        source = EncoderOutput(states.last_TD[: len(shown.source.padded_index_T)], shown.source, sequences)
        x_PD = self.decoder(shown.tokens.ids_T, shown.tokens.position_T, sequences, source)
        return smoothed_cross_entropy(
            self.decoder.logits(x_PD), told.ids, self.label_smoothing if self.training else 0.0
        )


def _build_decoder(backbone: Backbone, objective: Seq2SeqObjective) -> Decoder:
    """A decoder in the shape of the encoder, on its token table."""
    shape = backbone.config.decoder_config(objective.depth)
    return Decoder(shape, backbone.token_embedding, objective.max_positions, backbone.config.width)


def smoothed_cross_entropy(logits_PV: Tensor, targets_P: Tensor, label_smoothing: float) -> LossSum:
    """Cross-entropy, summed in float32. Some of the truth may be spread over the vocabulary (Szegedy et al., 2016)."""
    total = F.cross_entropy(logits_PV.float(), targets_P, reduction="sum", label_smoothing=label_smoothing)
    return LossSum(total, (logits_PV.argmax(-1) == targets_P).sum(), len(targets_P))
