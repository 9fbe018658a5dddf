"""One class out of some, for a pair of texts that are compared word by word: does the first entail the second?

What arrives: labels as written. What leaves: `PairClass`, which asks through the answer module of SAN.
What never happens here: a single text. What is asked about one text, or read from the first token, is a `Classify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from unmask.errors import InputError, RecipeError
from unmask.objectives.part import Question
from unmask.records import Fact, Instance, Target
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tune.encode import Room
from unmask.tune.exercise import Exercise
from unmask.tune.output import Kind, Ticker, silent
from unmask.tune.outputs.classify import ClassAnswer, Classify
from unmask.tune.rows import RowQuestion
from unmask.tune.sheet import Sheet
from unmask.tune.wish import NO_WISH, Wish
from unmask.views import Layout

if TYPE_CHECKING:
    from torch import nn

    from unmask.nets.trunk import Trunk
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class Compare:
    """Says which of some classes a pair of texts belongs to: the answer module of SAN (Liu et al., 2018)."""

    classes: int
    name: str = "pair"
    steps: int = 5
    """How often the memory looks at the first text; every look is a vote."""
    drop: float = 0.1
    """The chance of a vote not to count in a training step; one of a row always does."""
    weight: float = 1.0
    reads: ClassVar[type[Target]] = Fact
    first_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 <= self.drop < 1:
            raise RecipeError(
                f"An answer module needs at least 1 step and drops votes with a chance of at least 0 and below 1; "
                f"found {self.steps} steps and {self.drop}."
            )

    @property
    def facts(self) -> frozenset[str]:
        """The fact about a row that it is told."""
        return frozenset({self.name})

    def asks(self, sample: Layout) -> Question:
        """No token is asked for."""
        return Question()

    def head(self, trunk: Trunk, token: nn.Embedding) -> nn.Module:
        """As much is dropped out before the classes as anywhere in the trunk."""
        from unmask.objectives.answer_module import SayPair

        return SayPair(trunk, self.name, self.classes, self.steps, self.drop)

    def asked(self, instance: Instance) -> int:
        """One answer for each row that the fact is told about."""
        return sum(len(one.value) for one in instance.targets if isinstance(one, Fact) and one.name == self.name)


@dataclass(frozen=True, slots=True)
class PairClass:
    """A class for each pair of texts."""

    labels: tuple[str, ...]
    """In the order of their numbers."""
    name: str = "pair"
    steps: int = 5
    drop: float = 0.1
    kind: ClassVar[Kind] = Kind.PAIR

    @staticmethod
    def learn(sheet: Sheet[RowQuestion], wish: Wish = NO_WISH) -> PairClass:
        """The classes of a training file."""
        if len(sheet.questions[0].texts) != 2:
            raise InputError(
                f"{sheet.name}: a pair needs two texts in a row, found one. Name both fields (--fields ONE,TWO), or "
                "use --kind classify."
            )
        return PairClass(Classify.learn(sheet, wish).labels)

    @property
    def classes(self) -> Classify:
        """The same classes, without a word about how they are found."""
        return Classify(self.labels, self.name)

    @property
    def objective(self) -> Compare:
        """What a network learns to say."""
        return Compare(len(self.labels), self.name, self.steps, self.drop)

    def told(self, sheet: Sheet[RowQuestion]) -> Iterator[str]:
        """The classes and how often each occurs."""
        yield from self.classes.told(sheet)
        yield f"pairs are compared word by word, in {self.steps} steps"

    def check(self, sheet: Sheet[RowQuestion]) -> None:
        """Refuse a label that is not one of the classes."""
        self.classes.check(sheet)

    def lay_out(self, sheet: Sheet[RowQuestion], tokenizer: Tokenizer, room: Room, tick: Ticker = silent) -> Exercise:
        """One row of tokens for each pair."""
        return self.classes.lay_out(sheet, tokenizer, room, tick)

    def answer(self, learner: Learner, sheet: Sheet[RowQuestion], exercise: Exercise) -> Sequence[ClassAnswer]:
        """The likeliest class of each pair."""
        return self.classes.answer(learner, sheet, exercise)
