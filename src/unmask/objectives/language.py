"""Language models in an order: the next token, the token before, or tokens in a drawn order.

What arrives: `NextToken` or `Ordering`. What leaves: a prediction for every position that has an answer.
What never happens here: a view under which the answer can be looked up; a task with such a view is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unmask.objectives.part import Question, ranked
from unmask.records import NextToken, Ordering, Rewrite, Target
from unmask.views import Layout, following, in_place, preceding


@dataclass(frozen=True, slots=True)
class CLM:
    """Say the next token from what stands before it (GPT)."""

    weight: float = 1.0
    name: ClassVar[str] = "clm"
    reads: ClassVar[type[Target]] = NextToken
    """The next token."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def asks(self, sample: Layout) -> Question:
        """Position i says token i + 1."""
        return Question(tuple(following(sample)))


@dataclass(frozen=True, slots=True)
class BothWays:
    """Say the next token from the left and the token before from the right, in two streams (ELMo)."""

    weight: float = 1.0
    name: ClassVar[str] = "both_ways"
    reads: ClassVar[type[Target]] = NextToken
    """The next token; read backwards, the token before."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def asks(self, sample: Layout) -> Question:
        """The forward stream says what follows, the backward stream what precedes."""
        return Question((*following(sample, "forward"), *preceding(sample, "backward")))


@dataclass(frozen=True, slots=True)
class PLM:
    """Say tokens in a drawn order, each from those drawn before it (XLNet)."""

    stream: str = "query"
    weight: float = 1.0
    name: ClassVar[str] = "plm"
    reads: ClassVar[type[Target]] = Ordering
    """A drawn order."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def asks(self, sample: Layout) -> Question:
        """Each ordered position says its own token, which is in the input: only the view hides it."""
        return Question(tuple(in_place(ranked(sample), self.stream)))


@dataclass(frozen=True, slots=True)
class WriteOut:
    """Write the target from left to right with a decoder (MASS, BART, T5)."""

    weight: float = 1.0
    name: ClassVar[str] = "write_out"
    reads: ClassVar[type[Target]] = Rewrite
    """A rewriting."""
    facts: ClassVar[frozenset[str]] = frozenset()

    def asks(self, sample: Layout) -> Question:
        """The answers are the decoder's, and a decoder sees its own past only."""
        return Question()
