"""A piece of the passage as the answer to a question, or no answer.

What arrives: questions with their passages. What leaves: `Span`, which knows how long answers are and when to be
silent.
What never happens here: an answer that does not stand in its passage.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.data.span_qa import windows
from unmask.finetuning.data.span_qa.predictions import QAPrediction, predict_spans
from unmask.finetuning.data.span_qa.questions import QAExample, count_units
from unmask.finetuning.data.span_qa.windows import PassageWindows
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType, Ticker, ignore_progress
from unmask.objectives.span_extraction import SpanExtraction

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel

MAX_ANSWER_TOKENS = 30
"""The most tokens of an answer, unless the answers of the training file are longer."""
_LENGTH_PERCENTILE = 99
"""So many answers in a hundred of the training file must be short enough to be said."""


@dataclass(frozen=True, slots=True)
class SpanQATask:
    """A piece of each passage, of at most `longest` tokens."""

    max_answer_tokens: int = MAX_ANSWER_TOKENS
    allow_no_answer: bool = False
    """Whether the training file has questions without an answer; else something is always said."""
    threshold: float = 0.0
    """Nothing is said where the score of no answer is higher than that of the best piece by more than this."""
    name: str = "span"
    task_type: ClassVar[TaskType] = TaskType.SPAN_QA
    default_max_length: ClassVar[int] = 384

    def __post_init__(self) -> None:
        if self.max_answer_tokens < 1:
            raise InputError(f"An answer has at least one token, found a limit of {self.max_answer_tokens}.")

    @staticmethod
    def from_examples(sheet: ExampleSet[QAExample], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> SpanQATask:
        """How long answers are, and whether some questions have none."""
        answers = [question.answers[0].text for question in sheet.examples if question.answers]
        if not answers:
            raise InputError(f"{sheet.name}: no question has an answer, so nothing can be learned.")
        usual = max(
            MAX_ANSWER_TOKENS,
            math.ceil(float(np.percentile([count_units(text) for text in answers], _LENGTH_PERCENTILE))),
        )
        return SpanQATask(
            usual if options.max_answer_tokens is None else options.max_answer_tokens, len(answers) < len(sheet)
        )

    @property
    def objective(self) -> SpanExtraction:
        """What a network learns to say."""
        return SpanExtraction(self.name)

    def notes(self, sheet: ExampleSet[QAExample]) -> Iterator[str]:
        """How long an answer may be, and how many questions have none."""
        yield f"a piece of the passage is asked for, of at most {self.max_answer_tokens} tokens"
        none = sum(question.is_impossible for question in sheet.examples)
        if none:
            yield f"{none:,} of the questions ({none / len(sheet):.0%}) have no answer"

    def check(self, sheet: ExampleSet[QAExample]) -> None:
        """Refuse a question without an answer if training has seen none."""
        for question, where in zip(sheet.examples, sheet.source_lines, strict=True):
            if question.is_impossible and not self.allow_no_answer:
                raise InputError(
                    f"{where}: the question has no answer, but every question of the training file has one. Remove "
                    "the question, or train with questions that have no answer."
                )

    def encode(
        self, sheet: ExampleSet[QAExample], tokenizer: Tokenizer, limits: LengthLimits, tick: Ticker = ignore_progress
    ) -> EncodedDataset:
        """One row of tokens for each window of each question's passage."""
        return windows.encode_windows(sheet, self.name, tokenizer, limits, tick)

    def predict(
        self, learner: MultiHeadModel, sheet: ExampleSet[QAExample], dataset: EncodedDataset
    ) -> Sequence[QAPrediction]:
        """The best piece of each passage over all its windows, or nothing."""
        from unmask.finetuning.logits import token_logits

        assert isinstance(dataset.targets, PassageWindows), "the exercise was laid out by this kind of output"
        scores_T2 = token_logits(learner, self.name, dataset)
        border = self.threshold if self.allow_no_answer else math.inf
        return tuple(predict_spans(sheet.examples, dataset.targets, scores_T2, self.max_answer_tokens, border))

    def with_threshold(self, threshold: float) -> SpanQATask:
        """The same output with another threshold, which serves a set of questions best."""
        return replace(self, threshold=threshold)

    def apply_threshold(self, answers: Sequence[QAPrediction]) -> Sequence[QAPrediction]:
        """Answers that were given under another threshold, as they are under this one."""
        return tuple(replace(answer, threshold=self.threshold) for answer in answers)
