"""ELECTRA's generator: predicts masked tokens and replaces them by samples for the backbone (Clark et al., 2020).

No gradient flows through a sample: the generator is trained by maximum likelihood, not to fool the discriminator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from unmask.config.attention_pattern import RowCoordinates, own_token_sites
from unmask.config.network import TransformerConfig
from unmask.core.errors import RecipeError
from unmask.core.records import Cloze, InputsAndTargets, Target
from unmask.nets.accounting.flops import ForwardCost, lm_head_cost
from unmask.objectives.mlm import num_masked
from unmask.objectives.protocol import Objective, PredictionSites, predicted_positions

if TYPE_CHECKING:
    from torch import nn

    from unmask.config.network import NetworkConfig
    from unmask.nets.backbone import Backbone


class Tie(StrEnum):
    """What the generator shares with the network."""

    NONE = "none"
    EMBEDDINGS = "embeddings"
    """The embeddings of tokens, positions and segments with their norm; the paper's choice."""
    ALL = "all"
    """Everything but the head: the generator is the network itself, so it must have its size."""


@dataclass(frozen=True, slots=True)
class Generator(Objective):
    """The token at each chosen position, by a smaller network, whose samples the backbone reads.

    Tokens are drawn in proportion to the generator's probabilities, at temperature 1. With an `MLM` on its samples it
    is the paper's "Replace MLM".
    """

    width: float = 0.25
    """Width of the generator as a fraction of the network: states, heads and feed-forward layers."""
    depth: float = 1.0
    """Depth as a fraction of the network."""
    tie: Tie = Tie.EMBEDDINGS
    weight: float = 1.0
    rewrites_inputs: ClassVar[bool] = True
    name: ClassVar[str] = "guess"
    target_type: ClassVar[type[Target]] = Cloze
    """A cloze."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if not (0 < self.width <= 1 and 0 < self.depth <= 1):
            raise RecipeError(
                f"Generator needs a width and a depth above 0 and at most 1, as fractions of the network; "
                f"found {self.width} and {self.depth}. Change them."
            )

    def config_for(self, config: TransformerConfig) -> TransformerConfig:
        """The shape of the generator: whole heads, and a width that they divide.

        Shared embeddings are as wide as the network's; its own are as wide as itself (the released code).
        """
        heads = max(1, round(config.heads * self.width))
        return replace(
            config,
            depth=max(1, round(config.depth * self.depth)),
            heads=heads,
            width=heads * max(1, round(config.width * self.width / heads)),
            ffn_width=max(1, round(config.ffn_width * self.width)),
            embedding_width=0 if self.tie is Tie.NONE else config.token_width,
        )

    def check(self, config: NetworkConfig) -> None:
        """Refuse a network that is no Transformer encoder, and, where all is tied, one of another size."""
        encoder = require_transformer(config)
        own = self.config_for(encoder)
        if self.tie is Tie.ALL and replace(own, embedding_width=encoder.embedding_width) != encoder:
            raise RecipeError(
                f"Generator with tie=all is the network itself, so it needs width 1 and depth 1; found a generator of "
                f"depth {own.depth} and width {own.width} for a network of depth {encoder.depth} and width "
                f"{encoder.width}. Set both to 1, or tie the embeddings alone."
            )

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """Each chosen position predicts its own token, whose input is hidden."""
        return PredictionSites(tuple(own_token_sites(predicted_positions(sample))), predicted_positions(sample))

    def build_network(self, backbone: Backbone) -> nn.Module:
        """The generator with its head."""
        from unmask.objectives.heads.generator import GeneratorModule, build_generator

        encoder = backbone.require_encoder("A generator")
        self.check(encoder.config)
        return GeneratorModule(build_generator(encoder, self.config_for(encoder.config), self.tie))

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each chosen position."""
        return num_masked(instance)

    def cost(self, config: NetworkConfig, vocab_size: int) -> ForwardCost:
        """A network of its own, which reads every row once more, with an LM head."""
        own = self.config_for(require_transformer(config))
        return own.forward_cost() + lm_head_cost(own, vocab_size)


def all_networks(config: NetworkConfig, objectives: Iterable[Objective]) -> tuple[NetworkConfig, ...]:
    """The network, and its generators."""
    own = (one.config_for(require_transformer(config)) for one in objectives if isinstance(one, Generator))
    return (config, *own)


def require_transformer(config: NetworkConfig) -> TransformerConfig:
    """The configuration of a Transformer encoder; any other kind is refused."""
    if isinstance(config, TransformerConfig):
        return config
    raise RecipeError(
        f"Generator needs a network that is a Transformer encoder, found {type(config).__name__}. Leave the generator "
        "out, or take a TransformerConfig."
    )
