"""Ranking of candidates for a query.

Each candidate is scored in a row of its own, `[CLS] query [SEP] candidate [SEP]`. The loss is that of MT-DNN (Liu et
al., 2019): minus the logarithm of a softmax over a relevant candidate and the irrelevant ones of the same query. The
paper applies a sigmoid to scores first (`use_sigmoid`), which bounds a softmax of two scores at 73 %; by default scores
are compared as they are, as in the released code. Groups without both relevant and irrelevant candidates are not
trained on, but evaluated.
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
from unmask.core.records import CandidateGroups, Doubles, Ints
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, Ticker, encode_groups, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset, RowTargets
from unmask.finetuning.data.ranking import RankingExample
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType
from unmask.objectives.row_tasks import Ranking

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel


@dataclass(frozen=True, slots=True)
class RankingPrediction:
    """The score of each candidate, in the order of the example."""

    candidates: tuple[str, ...]
    scores: tuple[float, ...]

    def to_json(self) -> dict[str, object]:
        """The candidates with their scores, best first."""
        best = sorted(zip(self.scores, self.candidates, strict=True), key=lambda one: -one[0])
        return {"prediction": [{"candidate": candidate, "score": round(score, 6)} for score, candidate in best]}


@dataclass(frozen=True, slots=True)
class RankingTask:
    """A score for each candidate of a query."""

    max_candidates: int = 16
    """The largest group in training."""
    use_sigmoid: bool = False
    """Whether scores pass through a sigmoid before the softmax, as in MT-DNN's paper."""
    name: str = "rank"
    pooling: Pooling = Pooling.FIRST
    task_type: ClassVar[TaskType] = TaskType.RANKING

    def __post_init__(self) -> None:
        if self.max_candidates < 2:
            raise InputError(
                f"Ranking compares two candidates or more; --max-candidates {self.max_candidates} is too few."
            )

    @staticmethod
    def from_examples(examples: ExampleSet[RankingExample], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> RankingTask:
        """The task; the training file decides nothing."""
        return RankingTask(options.max_candidates, options.use_sigmoid, pooling=options.pooling)

    @property
    def objective(self) -> Ranking:
        """The training objective."""
        return Ranking(self.name, pooling=self.pooling, bounded=self.use_sigmoid)

    def notes(self, examples: ExampleSet[RankingExample]) -> Iterator[str]:
        """The number of candidates, and the groups that are not trained on."""
        rows, relevant = len(relevances(examples)), int((relevances(examples) > 0).sum())
        yield f"{rows:,} candidates for {len(examples):,} queries; {relevant / rows:.0%} of them are relevant"
        unusable = sum(not has_both_relevances(example) for example in examples.examples)
        if unusable:
            yield f"note: {unusable:,} queries are not trained on: all of their candidates are relevant, or none is"
        large = sum(has_both_relevances(one) and len(one.candidates) > self.max_candidates for one in examples.examples)
        if large:
            yield f"{large:,} queries have more than {self.max_candidates} candidates and are split in training"

    def check(self, examples: ExampleSet[RankingExample]) -> None:
        """Every group that could be read is valid."""

    def training_examples(self, examples: ExampleSet[RankingExample]) -> ExampleSet[RankingExample]:
        """The groups with relevant and irrelevant candidates, large ones split."""
        pairs = zip(examples.examples, examples.source_lines, strict=True)
        parts = [
            (part, where)
            for one, where in pairs
            if has_both_relevances(one)
            for part in split_group(one, self.max_candidates)
        ]
        if not parts:
            raise InputError(
                f"{examples.name}: in none of {len(examples):,} groups of candidates some are relevant and some are "
                "not. Training needs both; rows with the same query are a group."
            )
        return ExampleSet(examples.name, tuple(part for part, _ in parts), tuple(where for _, where in parts))

    def encode(
        self,
        examples: ExampleSet[RankingExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each candidate; a group is a query with all its candidates."""
        texts = [[(example.query, one) for one in example.candidates] for example in examples.examples]
        rows, groups = encode_groups(texts, examples.source_lines, tokenizer, limits, tick)
        if not all(example.truth for example in examples.examples):
            return EncodedDataset(rows, groups=groups)
        targets = RowTargets(CandidateGroups(self.name, groups, relevances(examples)))
        return EncodedDataset(rows, targets, groups)

    def predict(
        self, model: MultiHeadModel, examples: ExampleSet[RankingExample], dataset: EncodedDataset
    ) -> Sequence[RankingPrediction]:
        """The scores of all candidates of each query."""
        from unmask.finetuning.logits import row_logits

        scores = row_logits(model, self.name, dataset)[:, 0].astype(np.float64).tolist()
        groups = zip(examples.examples, pairwise(dataset.group_offsets.tolist()), strict=True)
        return [RankingPrediction(example.candidates, tuple(scores[first:end])) for example, (first, end) in groups]


def relevances(examples: ExampleSet[RankingExample]) -> Doubles:
    """The relevance of each candidate, flat."""
    return np.array([value for example in examples.examples for value in example.truth], dtype=np.float64)


def group_offsets(examples: ExampleSet[RankingExample]) -> Ints:
    """Offsets of the groups over all candidates."""
    return offsets(np.array([len(example.candidates) for example in examples.examples], dtype=np.int64))


def has_both_relevances(example: RankingExample) -> bool:
    """Whether some candidates are relevant and some are not."""
    return any(example.truth) and not all(example.truth)


def split_group(example: RankingExample, max_candidates: int) -> Iterator[RankingExample]:
    """A group in parts of at most `max_candidates`, each with relevant and irrelevant candidates.

    Relevant ones take at most half of a part, unless there are too few others. The shorter of the two lists is reused
    from its start, so that every candidate is trained on.
    """
    right = [place for place, value in enumerate(example.truth) if value]
    wrong = [place for place, value in enumerate(example.truth) if not value]
    some = min(len(right), max(max_candidates // 2, max_candidates - len(wrong)))
    others = min(len(wrong), max_candidates - some)
    for number in range(max(-(-len(right) // some), -(-len(wrong) // others))):
        chosen = sorted(_rotate(right, some, number) + _rotate(wrong, others, number))
        candidates = tuple(example.candidates[place] for place in chosen)
        yield RankingExample(example.query, candidates, tuple(example.truth[place] for place in chosen))


def _rotate(places: Sequence[int], count: int, number: int) -> list[int]:
    """The slice number `number` of `count` elements, wrapping around at the end."""
    return [places[(number * count + one) % len(places)] for one in range(count)]
