"""Sequence-to-sequence objectives: a prefix language model, or a decoder that attends to the encoder.

Both predict every token of the target and its end. The prefix language model needs an attention pattern with a prefix;
a decoder is causal by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.attention_pattern import RowCoordinates, next_token_sites
from unmask.core.records import ContinuationTarget, DecoderTarget, InputsAndTargets, Target
from unmask.nets.accounting.flops import ForwardCost, decoder_cost
from unmask.objectives.protocol import Objective, PredictionSites

if TYPE_CHECKING:
    from torch import nn

    from unmask.config.network import NetworkConfig
    from unmask.nets.backbone import Backbone


@dataclass(frozen=True, slots=True)
class PrefixLMObjective(Objective):
    """Continue the source with the encoder and its LM head: every pre-trained weight is used again."""

    label_smoothing: float = 0.0
    """The share of the truth that is spread over the whole vocabulary while learning."""
    weight: float = 1.0
    name: str = "write_after"
    target_type: ClassVar[type[Target]] = ContinuationTarget
    """A continuation."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Position i predicts token i + 1, except inside the source."""
        return PredictionSites(tuple(next_token_sites(sample)))

    def build_head(self, backbone: Backbone) -> nn.Module:
        """The head of masked language modelling, at the places before the tokens of the text."""
        from unmask.objectives.heads.seq2seq import CausalLMHead

        return CausalLMHead(backbone.config, backbone.token_embedding, self.label_smoothing)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each token of the texts, and one for each end."""
        return sum(len(target.positions) for target in instance.targets if isinstance(target, ContinuationTarget))


@dataclass(frozen=True, slots=True)
class Seq2SeqObjective(Objective):
    """Write the target with a decoder that attends to the states of the encoder (Vaswani et al., 2017)."""

    max_positions: int = 512
    """The longest target, its end counted, where a head builds a decoder with learned positions."""
    depth: int = 0
    """The layers of a decoder that a head builds; 0 means as many as the encoder. An own decoder has its own depth."""
    label_smoothing: float = 0.0
    """The share of the probability that is spread over the whole vocabulary in training."""
    weight: float = 1.0
    name: str = "write"
    target_type: ClassVar[type[Target]] = DecoderTarget
    facts: ClassVar[frozenset[str]] = frozenset()

    def build_head(self, backbone: Backbone) -> nn.Module:
        """The decoder of the network; for an encoder a new one of its shape, on its token table."""
        from unmask.objectives.heads.seq2seq import Seq2SeqHead

        return Seq2SeqHead(backbone, self)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One for each token of the targets, their ends counted."""
        return sum(len(target.ids) for target in instance.targets if isinstance(target, DecoderTarget))

    def cost(self, config: NetworkConfig, vocab_size: int) -> ForwardCost:
        """The decoder and its logits."""
        return decoder_cost(config.decoder_config(self.depth), config.width, vocab_size)
