"""Metrics, baselines and fitted thresholds by task type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from unmask.core.records import Doubles
from unmask.evaluation.metrics.classification import (
    Scores,
    choice_baseline,
    choice_metrics,
    classification_baseline,
    classification_metrics,
    regression_baseline,
    regression_metrics,
)
from unmask.evaluation.metrics.generation import generation_metrics
from unmask.evaluation.metrics.multilabel import multilabel_baseline, multilabel_metrics
from unmask.evaluation.metrics.ranking import ranking_baseline, ranking_metrics
from unmask.evaluation.metrics.span_qa import (
    QADefinition,
    best_thresholds,
    qa_baseline,
    qa_definition_for,
    qa_metrics,
)
from unmask.evaluation.metrics.tagging import ScoringScheme, tagging_baseline, tagging_metrics
from unmask.finetuning.data.dataset import AnyExampleSet, ExampleSet
from unmask.finetuning.data.seq2seq import Seq2SeqExample
from unmask.finetuning.data.span_qa.predictions import QAPrediction
from unmask.finetuning.data.span_qa.questions import QAExample
from unmask.finetuning.tasks.classification import ClassificationTask, ClassPrediction
from unmask.finetuning.tasks.generation import GenerationTask, TextPrediction
from unmask.finetuning.tasks.multilabel import MultiLabelPrediction, MultiLabelTask
from unmask.finetuning.tasks.multiple_choice import ChoicePrediction, MultipleChoiceTask, choice_counts, gold_indices
from unmask.finetuning.tasks.protocol import Prediction, TaskDefinition
from unmask.finetuning.tasks.ranking import RankingPrediction, RankingTask, group_offsets, relevances
from unmask.finetuning.tasks.regression import NumberPrediction, RegressionTask, target_numbers
from unmask.finetuning.tasks.san_pair import SANPairTask
from unmask.finetuning.tasks.span_qa import SpanQATask
from unmask.finetuning.tasks.tagging import TaggingTask, TagPrediction


def scores(task: TaskDefinition, examples: AnyExampleSet, predictions: Sequence[Prediction]) -> Scores:
    """The usual metrics of this task type; the first one is the main metric."""
    match task:
        case ClassificationTask():
            predicted = task.indices_of([one.prediction for one in cast(Sequence[ClassPrediction], predictions)])
            return classification_metrics(task.class_indices(examples), predicted, len(task.labels))
        case SANPairTask():
            return scores(task.as_classification, examples, predictions)
        case RegressionTask():
            numbers = np.array([one.prediction for one in cast(Sequence[NumberPrediction], predictions)])
            return regression_metrics(target_numbers(examples), numbers)
        case SpanQATask():
            correct, definition = _gold_spans(examples)
            return qa_metrics(
                correct, [one.prediction for one in cast(Sequence[QAPrediction], predictions)], definition
            )
        case MultiLabelTask():
            truths = task.bits([example.truth for example in examples.examples])
            return multilabel_metrics(
                truths, task.bits([one.prediction for one in cast(Sequence[MultiLabelPrediction], predictions)])
            )
        case MultipleChoiceTask():
            chosen = gold_indices([one.prediction for one in cast(Sequence[ChoicePrediction], predictions)], examples)
            return choice_metrics(gold_indices([example.truth for example in examples.examples], examples), chosen)
        case RankingTask():
            values = np.concatenate([one.scores for one in cast(Sequence[RankingPrediction], predictions)])
            return ranking_metrics(relevances(examples), values, group_offsets(examples))
        case TaggingTask():
            given = [one.prediction for one in cast(Sequence[TagPrediction], predictions)]
            found = tagging_metrics([example.truth for example in examples.examples], given, _scheme(task))
            return {"entity_f1": found["entity_f1"], **found} if task.spells_entities else found
        case GenerationTask():
            return _generation_scores(
                _reference_texts(examples), [one.prediction for one in cast(Sequence[TextPrediction], predictions)]
            )
    raise AssertionError(f"no metrics for {type(task).__name__}")


def trivial_baseline(task: TaskDefinition, train: AnyExampleSet, dev: AnyExampleSet) -> Scores:
    """The scores of a prediction that ignores the text, such as the majority class; empty if there is none."""
    match task:
        case ClassificationTask():
            return classification_baseline(task.class_indices(train), task.class_indices(dev), len(task.labels))
        case SANPairTask():
            return trivial_baseline(task.as_classification, train, dev)
        case RegressionTask():
            return regression_baseline(target_numbers(train), target_numbers(dev))
        case MultiLabelTask():
            sides = [task.bits([example.truth for example in examples.examples]) for examples in (train, dev)]
            return multilabel_baseline(*sides)
        case MultipleChoiceTask():
            return choice_baseline(choice_counts(dev))
        case RankingTask():
            return ranking_baseline(relevances(dev), group_offsets(dev))
        case TaggingTask():
            known, truth = ([example.truth for example in examples.examples] for examples in (train, dev))
            return tagging_baseline(known, truth, _scheme(task))
        case SpanQATask():
            return qa_baseline(*_gold_spans(dev))
        case GenerationTask():
            return _generation_scores(_reference_texts(dev), [example.source.lower() for example in dev.examples])
    return {}


def fit_thresholds(
    task: TaskDefinition, examples: AnyExampleSet, predictions: Sequence[Prediction]
) -> tuple[TaskDefinition, Sequence[Prediction]]:
    """The task with thresholds fitted to dev examples, and its predictions with them.

    Only extractive QA has one: the no-answer threshold with the best F1, found as by the script of SQuAD 2.0.
    """
    match task:
        case SpanQATask() if any(example.is_impossible for example in examples.examples):
            truths, definition = _gold_spans(examples)
            given = cast(Sequence[QAPrediction], predictions)
            no_answer = np.array([one.no_answer_score for one in given])
            best = best_thresholds(truths, [one.text for one in given], no_answer, definition)
            fitted = task.with_threshold(_between(best.f1.value, no_answer))
            return fitted, fitted.apply_threshold(given)
    return task, predictions


def _between(threshold: float, no_answer: Doubles) -> float:
    """An equivalent threshold halfway between two no-answer scores, so that rounding on another device is harmless."""
    at_most, larger = no_answer[no_answer <= threshold], no_answer[no_answer > threshold]
    below = float(at_most.max()) if len(at_most) else float(larger.min()) - 2.0
    above = float(larger.min()) if len(larger) else below + 2.0
    return (below + above) / 2


def _generation_scores(references: list[list[str]], predictions: Sequence[str]) -> Scores:
    """Metrics of texts; references are lower-cased if no prediction has a capital, as with an uncased tokenizer."""
    if all(text == text.lower() for text in predictions):
        references = [[text.lower() for text in texts] for texts in references]
    return generation_metrics(references, predictions)


def _reference_texts(examples: ExampleSet[Seq2SeqExample]) -> list[list[str]]:
    """The reference of each source."""
    return [[example.target] for example in examples.examples]


def _gold_spans(examples: ExampleSet[QAExample]) -> tuple[list[list[str]], QADefinition]:
    """The correct answers to each question, and the definition of the metrics."""
    truths = [[piece.text for piece in example.answers] for example in examples.examples]
    return truths, qa_definition_for(truths, {example.passage for example in examples.examples})


def _scheme(task: TaggingTask) -> ScoringScheme:
    """Entities are read as by the CoNLL script, in every scheme."""
    return ScoringScheme.CONLL if task.spells_entities else ScoringScheme.FREE
