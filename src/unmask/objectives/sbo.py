"""The span boundary objective: say each token of a span from the two tokens that stand around it (Joshi et al., 2019).

What arrives: a `Cloze`, for its spans. What leaves: for each token of a span the places of the two borders, and how far
inside the span it stands.
What never happens here: a border that was hidden itself. Spans that touch are one span, as in the released code.

The paper says nothing about spans at the ends of a text; its code asks nothing about a span that holds the first or the
last token, because it looks for borders before [CLS] and [SEP] are put around the text. So it is here: [CLS] at the
beginning and [SEP] at the end of a row are no borders. A [SEP] inside a row, which that code never has, is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.errors import RecipeError
from unmask.nets.flops import Cost, product, token_head_cost
from unmask.objectives.part import Question, ranked
from unmask.ragged import ranges
from unmask.records import Cloze, Instance, Ints, Spans, Target
from unmask.views import Layout, in_place

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.batch import Batch
    from unmask.nets.trunk import Trunk


@dataclass(frozen=True, slots=True)
class SBO:
    """Each token of a span from its borders: two layers with GELU and layer norm, then the token embedding."""

    weight: float = 1.0
    positions: int = 200
    """Width of the embedding that says which token of the span is meant."""
    most: int = 20
    """How many tokens of a span are asked for, from its left end; what lies deeper is left to the cloze."""
    name: ClassVar[str] = "sbo"
    reads: ClassVar[type[Target]] = Cloze
    """A cloze, for its spans."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if min(self.positions, self.most) < 1:
            raise RecipeError(
                f"SBO needs an embedding of positions that is at least 1 wide and asks for at least 1 token of a span; "
                f"found {self.positions} and {self.most}."
            )

    def asks(self, sample: Layout) -> Question:
        """The answers are the cloze's own, so the same inputs are hidden."""
        return Question(tuple(in_place(ranked(sample))), ranked(sample))

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """Logits for the tokens of all spans, from the states at their borders."""
        from unmask.objectives.sbo_head import SaySpans

        return SaySpans(trunk, token, self)

    def asked(self, instance: Instance) -> int:
        """One answer for each token that has borders."""
        clozes = (target for target in instance.targets if isinstance(target, Cloze))
        return sum(len(borders_of(one.spans, instance.inputs.rows, self.most).place) for one in clozes)

    def prepare(self, batch: Batch) -> Batch:
        """Find the borders of all spans."""
        from unmask.nets.answers import SpanAnswers
        from unmask.nets.batch import cloze_of
        from unmask.nets.layout import ship_ints

        cloze = cloze_of(batch)
        around = borders_of(cloze.spans, cloze.rows, self.most)
        parts = (around.left, around.right, around.place, around.answer)
        left_Q, right_Q, place_Q, answer_Q = (ship_ints(one, "cpu") for one in parts)
        return replace(batch, answers=(*batch.answers, SpanAnswers(left_Q, right_Q, place_Q, answer_Q)))

    def cost(self, trunk: Trunk, vocabulary: int) -> Cost:
        """A first layer over two borders and a place; the rest is as in a cloze."""
        borders = product(2 * trunk.width + self.positions, trunk.width)
        return token_head_cost(trunk, vocabulary) + Cost(answer=borders)


@dataclass(frozen=True, slots=True)
class Around:
    """For each token that is asked for: which answer of the cloze it is, its two borders, its place in the span."""

    answer: Ints
    left: Ints
    right: Ints
    place: Ints
    """Counted from 0 at the left end of the span."""


def borders_of(spans: Spans, rows: Ints, most: int) -> Around:
    """The borders of all tokens of all spans, in batch positions; `rows` are offsets."""
    apart = spans.end[:-1] < spans.start[1:]
    start, end = spans.start[np.append(True, apart)[: len(spans)]], spans.end[np.append(apart, True)[: len(spans)]]
    before = np.cumsum(end - start) - (end - start)  # the answers of a cloze lie in the order of its spans
    row = np.searchsorted(rows, start, side="right") - 1
    inside = np.flatnonzero((start - 1 > rows[row]) & (end < rows[row + 1] - 1))
    count = np.minimum((end - start)[inside], most)
    place = ranges(np.zeros_like(count), count)
    left, right = (np.repeat(border, count) for border in (start[inside] - 1, end[inside]))
    return Around(np.repeat(before[inside], count) + place, left, right, place)
