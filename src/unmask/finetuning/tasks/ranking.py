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

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.core.ragged import offsets
from unmask.core.records import Doubles, Ints
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, encode_texts
from unmask.finetuning.data.encoded_dataset import CandidateValues, EncodedDataset
from unmask.finetuning.data.ranking import RankingExample
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType, Ticker, ignore_progress
from unmask.objectives.row_tasks import Ranking

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class RankingPrediction:
    """What each candidate scores, in the order of the question."""

    candidates: tuple[str, ...]
    scores: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """The candidates with their scores, the best first."""
        best = sorted(zip(self.scores, self.candidates, strict=True), key=lambda one: -one[0])
        return {"prediction": [{"candidate": candidate, "score": round(score, 6)} for score, candidate in best]}


@dataclass(frozen=True, slots=True)
class RankingTask:
    """A score for each candidate of a query."""

    max_candidates: int = 16
    """The most candidates of a group that is learned from."""
    use_sigmoid: bool = False
    """Whether scores go through a sigmoid before they are compared, as MT-DNN's paper writes it."""
    name: str = "rank"
    pooling: Pooling = Pooling.FIRST
    task_type: ClassVar[TaskType] = TaskType.RANKING

    def __post_init__(self) -> None:
        if self.max_candidates < 2:
            raise InputError(
                f"To rank is to compare two candidates or more; --max-candidates {self.max_candidates} is too few."
            )

    @staticmethod
    def from_examples(sheet: ExampleSet[RankingExample], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> RankingTask:
        """Nothing but the wish decides: relevance is a number already."""
        return RankingTask(options.max_candidates, options.use_sigmoid, pooling=options.pooling)

    @property
    def objective(self) -> Ranking:
        """What a network learns to say."""
        return Ranking(self.name, pooling=self.pooling, bounded=self.use_sigmoid)

    def notes(self, sheet: ExampleSet[RankingExample]) -> Iterator[str]:
        """How many candidates there are, and what is left out of learning."""
        rows, relevant = len(relevances(sheet)), int((relevances(sheet) > 0).sum())
        yield f"{rows:,} candidates for {len(sheet):,} queries; {relevant / rows:.0%} of them are relevant"
        useless = sum(not has_both_relevances(question) for question in sheet.examples)
        if useless:
            yield f"note: {useless:,} queries are not learned from: all of their candidates are relevant, or none is"
        large = sum(has_both_relevances(one) and len(one.candidates) > self.max_candidates for one in sheet.examples)
        if large:
            yield f"{large:,} queries have more than {self.max_candidates} candidates and are learned in parts of at most so many"

    def check(self, sheet: ExampleSet[RankingExample]) -> None:
        """Whatever could be read can be ranked."""

    def training_examples(self, sheet: ExampleSet[RankingExample]) -> ExampleSet[RankingExample]:
        """The groups to learn from: those that tell candidates apart, large ones in parts."""
        pairs = zip(sheet.examples, sheet.source_lines, strict=True)
        held = [
            (part, where)
            for one, where in pairs
            if has_both_relevances(one)
            for part in split_group(one, self.max_candidates)
        ]
        if not held:
            raise InputError(
                f"{sheet.name}: in none of {len(sheet):,} groups of candidates some are relevant and some are not, so "
                "nothing can be learned. Rows with the same query are a group."
            )
        return ExampleSet(sheet.name, tuple(part for part, _ in held), tuple(where for _, where in held))

    def encode(
        self,
        sheet: ExampleSet[RankingExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each candidate; an item is a query with all its candidates."""
        items = group_offsets(sheet)
        texts = [(question.query, one) for question in sheet.examples for one in question.candidates]
        where = np.repeat(np.array(sheet.source_lines, dtype=object), np.diff(items)).tolist()
        rows = encode_texts(
            texts, tokenizer, limits, where, lambda done: tick(int(np.searchsorted(items, done, "right")) - 1)
        )
        if not all(question.truth for question in sheet.examples):
            return EncodedDataset(rows, groups=items)
        return EncodedDataset(rows, CandidateValues(self.name, relevances(sheet)), items)

    def predict(
        self, learner: MultiHeadModel, sheet: ExampleSet[RankingExample], dataset: EncodedDataset
    ) -> Sequence[RankingPrediction]:
        """What each candidate of each query scores."""
        from unmask.finetuning.logits import row_logits

        scores = row_logits(learner, self.name, dataset)[:, 0].astype(np.float64).tolist()
        groups = zip(sheet.examples, pairwise(dataset.group_offsets.tolist()), strict=True)
        return [RankingPrediction(question.candidates, tuple(scores[first:end])) for question, (first, end) in groups]


def relevances(sheet: ExampleSet[RankingExample]) -> Doubles:
    """How relevant each candidate is, flat."""
    return np.array([value for question in sheet.examples for value in question.truth], dtype=np.float64)


def group_offsets(sheet: ExampleSet[RankingExample]) -> Ints:
    """Where the candidates of each query begin and end."""
    return offsets(np.array([len(question.candidates) for question in sheet.examples], dtype=np.int64))


def has_both_relevances(question: RankingExample) -> bool:
    """Whether some candidates are relevant and some are not."""
    return any(question.truth) and not all(question.truth)


def split_group(question: RankingExample, max_candidates: int) -> Iterator[RankingExample]:
    """A group in parts of at most `most` candidates, each with relevant and with irrelevant ones.

    Relevant ones take at most half of a part, unless there are too few others. Both kinds take turns, and the shorter
    of the two begins again, so that every candidate is learned from.
    """
    right = [place for place, value in enumerate(question.truth) if value]
    wrong = [place for place, value in enumerate(question.truth) if not value]
    some = min(len(right), max(max_candidates // 2, max_candidates - len(wrong)))
    others = min(len(wrong), max_candidates - some)
    for number in range(max(-(-len(right) // some), -(-len(wrong) // others))):
        chosen = sorted(_rotate(right, some, number) + _rotate(wrong, others, number))
        candidates = tuple(question.candidates[place] for place in chosen)
        yield RankingExample(question.query, candidates, tuple(question.truth[place] for place in chosen))


def _rotate(places: Sequence[int], count: int, number: int) -> list[int]:
    """The next `count` of some places, after `number` turns; from the beginning again after the last."""
    return [places[(number * count + one) % len(places)] for one in range(count)]
