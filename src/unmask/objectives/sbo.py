"""Span boundary objective: each token of a span is predicted from its two border tokens (Joshi et al., 2019).

Adjacent spans are one span, as in the released code, so no border is masked. The paper does not define spans at the
ends of a text; its code skips a span with the first or last token, because it looks for borders before it adds [CLS]
and [SEP]. Likewise the [CLS] and [SEP] at the ends of a row are no borders here. A [SEP] inside a row, which that code
never has, is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.config.attention_pattern import RowCoordinates, own_token_sites
from unmask.core.errors import RecipeError
from unmask.core.ragged import concat_ranges
from unmask.core.records import Cloze, InputsAndTargets, Ints, SpanBorders, Spans, Target
from unmask.nets.accounting.flops import ForwardCost, lm_head_cost, matmul_flops
from unmask.objectives.protocol import Objective, PredictionSites, predicted_positions

if TYPE_CHECKING:
    from torch import nn

    from unmask.config.network import NetworkValues
    from unmask.nets.backbone import Backbone
    from unmask.nets.batch.batch import Batch


@dataclass(frozen=True, slots=True)
class SBO(Objective):
    """Each token of a span from its borders: two layers with GELU and layer norm, then the token embedding."""

    weight: float = 1.0
    position_width: int = 200
    """Width of the embedding of a token's position in its span."""
    max_span_tokens: int = 20
    """How many tokens of a span are predicted, from its left end; deeper ones have only the MLM loss."""
    name: ClassVar[str] = "sbo"
    target_type: ClassVar[type[Target]] = Cloze
    """A cloze, for its spans."""
    facts: ClassVar[frozenset[str]] = frozenset()
    prepares_batch: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if min(self.position_width, self.max_span_tokens) < 1:
            raise RecipeError(
                f"SBO needs an embedding of positions that is at least 1 wide and predicts at least 1 token of a span; "
                f"found {self.position_width} and {self.max_span_tokens}."
            )

    def prediction_sites(self, sample: RowCoordinates) -> PredictionSites:
        """The targets are those of the MLM task, so the same inputs are hidden."""
        return PredictionSites(tuple(own_token_sites(predicted_positions(sample))), predicted_positions(sample))

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Logits for the tokens of all spans, from the states at their borders."""
        from unmask.objectives.heads.sbo import SBOHead

        return SBOHead(backbone.config, backbone.token_embedding, self)

    def num_predictions(self, instance: InputsAndTargets) -> int:
        """One answer for each token that has borders."""
        clozes = (target for target in instance.targets if isinstance(target, Cloze))
        return sum(
            len(find_span_borders(one.spans, instance.inputs.rows, self.max_span_tokens).offset) for one in clozes
        )

    def prepare(self, batch: Batch) -> Batch:
        """Find the borders of all spans."""
        from unmask.nets.batch.batch import target_to_device

        around = find_span_borders(batch.target(Cloze).spans, batch.row_offsets, self.max_span_tokens)
        return replace(batch, targets=(*batch.targets, target_to_device(around)))

    def cost(self, config: NetworkValues, vocab_size: int) -> ForwardCost:
        """A first layer over two borders and a position; the rest is as in an LM head."""
        borders = matmul_flops(2 * config.width + self.position_width, config.width)
        return lm_head_cost(config, vocab_size) + ForwardCost(per_prediction=borders)


def find_span_borders(spans: Spans, rows: Ints, max_span_tokens: int) -> SpanBorders:
    """The borders of all tokens of all spans, in batch positions; `rows` are offsets."""
    apart = spans.end[:-1] < spans.start[1:]
    start, end = spans.start[np.append(True, apart)[: len(spans)]], spans.end[np.append(apart, True)[: len(spans)]]
    before = np.cumsum(end - start) - (end - start)  # the targets of a `Cloze` are in the order of its spans
    row = np.searchsorted(rows, start, side="right") - 1
    inside = np.flatnonzero((start - 1 > rows[row]) & (end < rows[row + 1] - 1))
    count = np.minimum((end - start)[inside], max_span_tokens)
    place = concat_ranges(np.zeros_like(count), count)
    left, right = (np.repeat(border, count) for border in (start[inside] - 1, end[inside]))
    return SpanBorders(np.repeat(before[inside], count) + place, left, right, place)
