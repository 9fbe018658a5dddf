"""An order of candidates: ranking.

What arrives: queries with their candidates. What leaves: `Rank`, which scores each candidate in a row of its own.
What never happens here: a group to learn from that teaches nothing. Where all candidates are relevant, or none is,
there is nothing to tell apart; such groups are left out of learning, counted and told, and judged like all others.

A row is `[CLS] query [SEP] candidate [SEP]`. The loss is that of MT-DNN (Liu et al., 2019): minus the logarithm of a
softmax over a relevant candidate and the irrelevant ones of the same query. The paper sends each score through a
sigmoid first (`bounded`). A softmax of two numbers between 0 and 1 can never say more than 73 %, so by default scores
go in as they are, as in the code that the authors released.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.errors import InputError
from unmask.nets.reading import ReadOut
from unmask.ragged import offsets
from unmask.records import Amounts, Ints
from unmask.tokenize.tokenizer import Tokenizer
from unmask.tune.encode import Room, encode
from unmask.tune.exercise import Exercise, GroupValues
from unmask.tune.judge import Pick
from unmask.tune.output import Kind, Ticker, silent
from unmask.tune.rank_rows import RankQuestion
from unmask.tune.sheet import Sheet
from unmask.tune.wish import NO_WISH, Wish

if TYPE_CHECKING:
    from unmask.train.learner import Learner


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """What each candidate scores, in the order of the question."""

    candidates: tuple[str, ...]
    scores: tuple[float, ...]

    def line(self) -> dict[str, object]:
        """The candidates with their scores, the best first."""
        best = sorted(zip(self.scores, self.candidates, strict=True), key=lambda one: -one[0])
        return {"said": [{"candidate": candidate, "score": round(score, 6)} for score, candidate in best]}


@dataclass(frozen=True, slots=True)
class Rank:
    """A score for each candidate of a query."""

    most: int = 16
    """The most candidates of a group that is learned from."""
    bounded: bool = False
    """Whether scores go through a sigmoid before they are compared, as MT-DNN's paper writes it."""
    name: str = "rank"
    read: ReadOut = ReadOut.FIRST
    kind: ClassVar[Kind] = Kind.RANK

    def __post_init__(self) -> None:
        if self.most < 2:
            raise InputError(f"To rank is to compare two candidates or more; --candidates {self.most} is too few.")

    @staticmethod
    def learn(sheet: Sheet[RankQuestion], wish: Wish = NO_WISH) -> Rank:
        """Nothing but the wish decides: relevance is a number already."""
        return Rank(wish.most, wish.bounded, read=wish.read)

    @property
    def objective(self) -> Pick:
        """What a network learns to say."""
        return Pick(self.name, read=self.read, bounded=self.bounded)

    def told(self, sheet: Sheet[RankQuestion]) -> Iterator[str]:
        """How many candidates there are, and what is left out of learning."""
        rows, relevant = len(relevances(sheet)), int((relevances(sheet) > 0).sum())
        yield f"{rows:,} candidates for {len(sheet):,} queries; {relevant / rows:.0%} of them are relevant"
        useless = sum(not teaches(question) for question in sheet.questions)
        if useless:
            yield f"note: {useless:,} queries are not learned from: all of their candidates are relevant, or none is"
        large = sum(teaches(one) and len(one.candidates) > self.most for one in sheet.questions)
        if large:
            yield f"{large:,} queries have more than {self.most} candidates and are learned in parts of at most so many"

    def check(self, sheet: Sheet[RankQuestion]) -> None:
        """Whatever could be read can be ranked."""

    def practice(self, sheet: Sheet[RankQuestion]) -> Sheet[RankQuestion]:
        """The groups to learn from: those that tell candidates apart, large ones in parts."""
        pairs = zip(sheet.questions, sheet.where, strict=True)
        held = [(part, where) for one, where in pairs if teaches(one) for part in parts(one, self.most)]
        if not held:
            raise InputError(
                f"{sheet.name}: in none of {len(sheet):,} groups of candidates some are relevant and some are not, so "
                "nothing can be learned. Rows with the same query are a group."
            )
        return Sheet(sheet.name, tuple(part for part, _ in held), tuple(where for _, where in held))

    def lay_out(self, sheet: Sheet[RankQuestion], tokenizer: Tokenizer, room: Room, tick: Ticker = silent) -> Exercise:
        """One row of tokens for each candidate; an item is a query with all its candidates."""
        items = group_offsets(sheet)
        texts = [(question.query, one) for question in sheet.questions for one in question.candidates]
        where = np.repeat(np.array(sheet.where, dtype=object), np.diff(items)).tolist()
        rows = encode(texts, tokenizer, room, where, lambda done: tick(int(np.searchsorted(items, done, "right")) - 1))
        if not all(question.truth for question in sheet.questions):
            return Exercise(rows, items=items)
        return Exercise(rows, GroupValues(self.name, relevances(sheet)), items)

    def answer(self, learner: Learner, sheet: Sheet[RankQuestion], exercise: Exercise) -> Sequence[RankAnswer]:
        """What each candidate of each query scores."""
        from unmask.tune.say import row_scores

        scores = row_scores(learner, self.name, exercise)[:, 0].astype(np.float64).tolist()
        groups = zip(sheet.questions, pairwise(exercise.begin.tolist()), strict=True)
        return [RankAnswer(question.candidates, tuple(scores[first:end])) for question, (first, end) in groups]


def relevances(sheet: Sheet[RankQuestion]) -> Amounts:
    """How relevant each candidate is, flat."""
    return np.array([value for question in sheet.questions for value in question.truth], dtype=np.float64)


def group_offsets(sheet: Sheet[RankQuestion]) -> Ints:
    """Where the candidates of each query begin and end."""
    return offsets(np.array([len(question.candidates) for question in sheet.questions], dtype=np.int64))


def teaches(question: RankQuestion) -> bool:
    """Whether some candidates are relevant and some are not."""
    return any(question.truth) and not all(question.truth)


def parts(question: RankQuestion, most: int) -> Iterator[RankQuestion]:
    """A group in parts of at most `most` candidates, each with relevant and with irrelevant ones.

    Relevant ones take at most half of a part, unless there are too few others. Both kinds take turns, and the shorter
    of the two begins again, so that every candidate is learned from.
    """
    right = [place for place, value in enumerate(question.truth) if value]
    wrong = [place for place, value in enumerate(question.truth) if not value]
    some = min(len(right), max(most // 2, most - len(wrong)))
    others = min(len(wrong), most - some)
    for number in range(max(-(-len(right) // some), -(-len(wrong) // others))):
        chosen = sorted(_turn(right, some, number) + _turn(wrong, others, number))
        candidates = tuple(question.candidates[place] for place in chosen)
        yield RankQuestion(question.query, candidates, tuple(question.truth[place] for place in chosen))


def _turn(places: Sequence[int], count: int, number: int) -> list[int]:
    """The next `count` of some places, after `number` turns; from the beginning again after the last."""
    return [places[(number * count + one) % len(places)] for one in range(count)]
