"""How good answers are, by what was asked.

What arrives: an output, the questions it was judged by, and what a network said to them. What leaves: scores by name.
What never happens here: a score of its own. Each kind of question has its file in this folder.
"""

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
from unmask.evaluation.metrics.multilabel import multilabel_baseline as labelling_baseline
from unmask.evaluation.metrics.multilabel import multilabel_metrics
from unmask.evaluation.metrics.ranking import ranking_baseline as ranking_baseline
from unmask.evaluation.metrics.ranking import ranking_metrics
from unmask.evaluation.metrics.span_qa import QADefinition, best_thresholds, qa_definition_for, qa_metrics
from unmask.evaluation.metrics.span_qa import qa_baseline as spans_baseline
from unmask.evaluation.metrics.tagging import ScoringScheme, tagging_metrics
from unmask.evaluation.metrics.tagging import tagging_baseline as tagging_baseline
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


def scores(task: TaskDefinition, sheet: AnyExampleSet, predictions: Sequence[Prediction]) -> Scores:
    """The scores that are usual for this kind of question; the first of them is the one to compare by."""
    match task:
        case ClassificationTask():
            said = task.indices_of([one.prediction for one in cast(Sequence[ClassPrediction], predictions)])
            return classification_metrics(task.class_indices(sheet), said, len(task.labels))
        case SANPairTask():
            return scores(task.as_classification, sheet, predictions)
        case RegressionTask():
            numbers = np.array([one.prediction for one in cast(Sequence[NumberPrediction], predictions)])
            return regression_metrics(target_numbers(sheet), numbers)
        case SpanQATask():
            right, reading = _gold_spans(sheet)
            return qa_metrics(right, [one.prediction for one in cast(Sequence[QAPrediction], predictions)], reading)
        case MultiLabelTask():
            truths = task.bits([question.truth for question in sheet.examples])
            return multilabel_metrics(
                truths, task.bits([one.prediction for one in cast(Sequence[MultiLabelPrediction], predictions)])
            )
        case MultipleChoiceTask():
            chosen = gold_indices([one.prediction for one in cast(Sequence[ChoicePrediction], predictions)], sheet)
            return choice_metrics(gold_indices([question.truth for question in sheet.examples], sheet), chosen)
        case RankingTask():
            told = np.concatenate([one.scores for one in cast(Sequence[RankingPrediction], predictions)])
            return ranking_metrics(relevances(sheet), told, group_offsets(sheet))
        case TaggingTask():
            given = [one.prediction for one in cast(Sequence[TagPrediction], predictions)]
            found = tagging_metrics([question.truth for question in sheet.examples], given, _scheme(task))
            return {"entity_f1": found["entity_f1"], **found} if task.spells_entities else found
        case GenerationTask():
            return _generation_scores(
                _reference_texts(sheet), [one.prediction for one in cast(Sequence[TextPrediction], predictions)]
            )
    raise AssertionError(f"nobody knows how good a {type(task).__name__} is")


def trivial_baseline(task: TaskDefinition, train: AnyExampleSet, dev: AnyExampleSet) -> Scores:
    """What is scored by an answer that knows the training file and nothing of the text; empty where there is none."""
    match task:
        case ClassificationTask():
            return classification_baseline(task.class_indices(train), task.class_indices(dev), len(task.labels))
        case SANPairTask():
            return trivial_baseline(task.as_classification, train, dev)
        case RegressionTask():
            return regression_baseline(target_numbers(train), target_numbers(dev))
        case MultiLabelTask():
            sides = [task.bits([question.truth for question in sheet.examples]) for sheet in (train, dev)]
            return labelling_baseline(*sides)
        case MultipleChoiceTask():
            return choice_baseline(choice_counts(dev))
        case RankingTask():
            return ranking_baseline(relevances(dev), group_offsets(dev))
        case TaggingTask():
            known, truth = ([question.truth for question in sheet.examples] for sheet in (train, dev))
            return tagging_baseline(known, truth, _scheme(task))
        case SpanQATask():
            return spans_baseline(*_gold_spans(dev))
        case GenerationTask():
            return _generation_scores(_reference_texts(dev), [question.source.lower() for question in dev.examples])
    return {}


def fit_thresholds(
    task: TaskDefinition, sheet: AnyExampleSet, predictions: Sequence[Prediction]
) -> tuple[TaskDefinition, Sequence[Prediction]]:
    """The output with what is chosen by the questions to judge by, and the answers as they are then.

    Only spans know such a choice: how much doubt keeps an answer back. It is the one with the best F1, as the script of
    SQuAD 2.0 finds it.
    """
    match task:
        case SpanQATask() if any(question.is_impossible for question in sheet.examples):
            truths, reading = _gold_spans(sheet)
            given = cast(Sequence[QAPrediction], predictions)
            doubt = np.array([one.no_answer_score for one in given])
            best = best_thresholds(truths, [one.text for one in given], doubt, reading)
            fitted = task.with_threshold(_between(best.f1.value, doubt))
            return fitted, fitted.apply_threshold(given)
    return task, predictions


def _between(threshold: float, doubt: Doubles) -> float:
    """A threshold that keeps the same answers back, halfway between the doubts beside it.

    The script puts it on the doubt of a question. There, the last digit of a sum on another device would decide whether
    that question is answered.
    """
    kept, held = doubt[doubt <= threshold], doubt[doubt > threshold]
    below = float(kept.max()) if len(kept) else float(held.min()) - 2.0
    above = float(held.min()) if len(held) else below + 2.0
    return (below + above) / 2


def _generation_scores(right: list[list[str]], said: Sequence[str]) -> Scores:
    """Scores of texts. Where no capital was ever written, as by an uncased tokenizer, none is asked for."""
    if all(text == text.lower() for text in said):
        right = [[text.lower() for text in texts] for texts in right]
    return generation_metrics(right, said)


def _reference_texts(sheet: ExampleSet[Seq2SeqExample]) -> list[list[str]]:
    """The one text that is right for each source."""
    return [[question.target] for question in sheet.examples]


def _gold_spans(sheet: ExampleSet[QAExample]) -> tuple[list[list[str]], QADefinition]:
    """The right answers to each question, and by whose definition they are judged."""
    truths = [[piece.text for piece in question.answers] for question in sheet.examples]
    return truths, qa_definition_for(truths, {question.passage for question in sheet.examples})


def _scheme(output: TaggingTask) -> ScoringScheme:
    """Entities are read as the CoNLL script reads them, in whatever scheme they are spelled."""
    return ScoringScheme.CONLL if output.spells_entities else ScoringScheme.FREE
