"""Heads that write a target: a prefix language model, and a decoder on the states of the encoder.

Shapes: P tokens of all targets, T tokens of the batch, D width, V vocabulary.
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
        target = batch.target(ContinuationTarget)
        logits_PV = self.lm_head(states.last_TD[target.positions])
        return smoothed_cross_entropy(logits_PV, target.answers, self.label_smoothing if self.training else 0.0)


class Seq2SeqHead(nn.Module):
    """The target of each row, by a decoder with teacher forcing."""

    def __init__(self, backbone: Backbone, objective: Seq2SeqObjective) -> None:
        super().__init__()
        self.label_smoothing = objective.label_smoothing
        self.decoder = backbone.own_decoder() or _build_decoder(backbone, objective)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """The loss of all targets. Rows after those that have one belong to other objectives."""
        target = batch.target(DecoderTarget)
        (decoder,) = batch.decoder
        sequences = decoder.tokens.sequences
        source = EncoderOutput(states.last_TD[: len(decoder.source.padded_index_T)], decoder.source, sequences)
        x_PD = self.decoder(decoder.tokens.ids_T, decoder.tokens.position_T, sequences, source)
        return smoothed_cross_entropy(
            self.decoder.logits(x_PD), target.ids, self.label_smoothing if self.training else 0.0
        )


def _build_decoder(backbone: Backbone, objective: Seq2SeqObjective) -> Decoder:
    """A decoder in the shape of the encoder, on its token table."""
    shape = backbone.config.decoder_config(objective.depth)
    return Decoder(shape, backbone.token_embedding, objective.max_positions, backbone.config.width)


def smoothed_cross_entropy(logits_PV: Tensor, targets_P: Tensor, label_smoothing: float) -> LossSum:
    """Cross-entropy with label smoothing (Szegedy et al., 2016), summed in float32."""
    total = F.cross_entropy(logits_PV.float(), targets_P, reduction="sum", label_smoothing=label_smoothing)
    return LossSum(total, (logits_PV.argmax(-1) == targets_P).sum(), len(targets_P))
