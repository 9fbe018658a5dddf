"""Extractive question answering: a span of the passage as the answer, or no answer (SQuAD 2.0)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits, Ticker, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.data.span_qa import windows
from unmask.finetuning.data.span_qa.predictions import QAPrediction, predict_spans
from unmask.finetuning.data.span_qa.questions import QAExample, count_units
from unmask.finetuning.data.span_qa.windows import PassageWindows
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskType
from unmask.objectives.span_extraction import SpanExtraction

if TYPE_CHECKING:
    from unmask.train.multi_head_model import MultiHeadModel

MAX_ANSWER_TOKENS = 30
"""The default limit, raised if answers of the training file are longer."""
_LENGTH_PERCENTILE = 99
"""The percentile of training answers that must fit into the limit."""


@dataclass(frozen=True, slots=True)
class SpanQATask:
    """A span of each passage, of at most `max_answer_tokens` tokens."""

    max_answer_tokens: int = MAX_ANSWER_TOKENS
    allow_no_answer: bool = False
    """Whether no answer can be predicted: the training file has unanswerable questions."""
    threshold: float = 0.0
    """No answer is predicted if its score exceeds that of the best span by more than this."""
    name: str = "span"
    task_type: ClassVar[TaskType] = TaskType.SPAN_QA

    def __post_init__(self) -> None:
        if self.max_answer_tokens < 1:
            raise InputError(f"--max-answer-tokens must be at least one token, found {self.max_answer_tokens}.")

    @staticmethod
    def from_examples(examples: ExampleSet[QAExample], options: TaskOptions = DEFAULT_TASK_OPTIONS) -> SpanQATask:
        """The answer length and whether some questions are unanswerable, from a training file."""
        answers = [question.answers[0].text for question in examples.examples if question.answers]
        if not answers:
            raise InputError(f"{examples.name}: no question has an answer. Training needs questions with answers.")
        usual = max(
            MAX_ANSWER_TOKENS,
            math.ceil(float(np.percentile([count_units(text) for text in answers], _LENGTH_PERCENTILE))),
        )
        return SpanQATask(
            usual if options.max_answer_tokens is None else options.max_answer_tokens, len(answers) < len(examples)
        )

    @property
    def objective(self) -> SpanExtraction:
        """The training objective."""
        return SpanExtraction(self.name)

    def notes(self, examples: ExampleSet[QAExample]) -> Iterator[str]:
        """The answer limit, and how many questions are unanswerable."""
        yield f"extractive question answering: answers of at most {self.max_answer_tokens} tokens"
        none = sum(question.is_impossible for question in examples.examples)
        if none:
            yield f"{none:,} of the questions ({none / len(examples):.0%}) have no answer"

    def check(self, examples: ExampleSet[QAExample]) -> None:
        """Refuse an unanswerable question if the training file has none."""
        for question, where in zip(examples.examples, examples.source_lines, strict=True):
            if question.is_impossible and not self.allow_no_answer:
                raise InputError(
                    f"{where}: the question has no answer, but every question of the training file has one. Remove "
                    "the question, or train with questions that have no answer."
                )

    def encode(
        self,
        examples: ExampleSet[QAExample],
        tokenizer: Tokenizer,
        limits: LengthLimits,
        tick: Ticker = ignore_progress,
    ) -> EncodedDataset:
        """One row of tokens for each window of each question's passage."""
        return windows.encode_windows(examples, self.name, tokenizer, limits, tick)

    def predict(
        self, model: MultiHeadModel, examples: ExampleSet[QAExample], dataset: EncodedDataset
    ) -> Sequence[QAPrediction]:
        """The best span of each passage over all its windows, or no answer."""
        from unmask.finetuning.logits import token_logits

        assert isinstance(dataset.targets, PassageWindows), "the dataset was encoded by this task"
        scores_T2 = token_logits(model, self.name, dataset)
        border = self.threshold if self.allow_no_answer else math.inf
        return tuple(predict_spans(examples.examples, dataset.targets, scores_T2, self.max_answer_tokens, border))

    def with_threshold(self, threshold: float) -> SpanQATask:
        """The same task with another no-answer threshold."""
        return replace(self, threshold=threshold)

    def apply_threshold(self, answers: Sequence[QAPrediction]) -> Sequence[QAPrediction]:
        """Predictions made with another threshold, under this one."""
        return tuple(replace(answer, threshold=self.threshold) for answer in answers)
