"""Writing a text for a source: behind it with the encoder itself, or with a decoder beside it.

What arrives: `Continue` or `Rewrite`. What leaves: a prediction for every token of the text, and one for its end.
What never happens here: a text that is read before it is written. The encoder must hide what is to come (a view with a
prefix); a decoder hides it by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.config.attention_pattern import RowCoordinates, next_token_sites
from unmask.core.records import ContinuationTarget, DecoderTarget, InputsAndTargets, Target
from unmask.objectives.protocol import PredictionSites

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.backbone import Backbone


@dataclass(frozen=True, slots=True)
class PrefixLMObjective:
    """Go on behind the source with the encoder and its head for tokens: every pre-trained weight is used again."""

    label_smoothing: float = 0.0
    """The share of the truth that is spread over the whole vocabulary while learning."""
    weight: float = 1.0
    name: str = "write_after"
    target_type: ClassVar[type[Target]] = ContinuationTarget
    """A continuation."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Position i says token i + 1, wherever that is not source."""
        return PredictionSites(tuple(next_token_sites(sample)))

    def build_head(self, backbone: Backbone) -> nn.Module:
        """The head of masked language modelling, at the places before the tokens of the text."""
        from unmask.objectives.heads.seq2seq import CausalLMHead

        return CausalLMHead(backbone.config, backbone.token_embedding, self.label_smoothing)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each token of the texts, and one for each end."""
        return sum(len(target.positions) for target in instance.targets if isinstance(target, ContinuationTarget))


@dataclass(frozen=True, slots=True)
class Seq2SeqObjective:
    """Write the text with a decoder that looks at the states of the encoder (Vaswani et al., 2017)."""

    max_positions: int
    """The longest text, its end counted."""
    depth: int = 0
    """How many blocks the decoder has; 0 stands for as many as the encoder."""
    label_smoothing: float = 0.0
    """The share of the truth that is spread over the whole vocabulary while learning."""
    weight: float = 1.0
    name: str = "write"
    target_type: ClassVar[type[Target]] = DecoderTarget
    """A rewriting."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """The answers are the decoder's, and a decoder sees its own past only."""
        return PredictionSites()

    def build_head(self, backbone: Backbone) -> nn.Module:
        """A decoder in the shape of the trunk, on the token embedding of the encoder."""
        from unmask.objectives.heads.seq2seq import Seq2SeqHead

        return Seq2SeqHead(backbone, self)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each token of the texts, their ends counted."""
        return sum(len(target.ids) for target in instance.targets if isinstance(target, DecoderTarget))
