"""How good answers are, by what was asked.

What arrives: an output, the questions it was judged by, and what a network said to them. What leaves: scores by name.
What never happens here: a score of its own. Each kind of question has its file in this folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from unmask.evaluate.labels import baseline as labelling_baseline
from unmask.evaluate.labels import labelling
from unmask.evaluate.metrics import (
    Scores,
    choice,
    choice_baseline,
    classification,
    classification_baseline,
    regression,
    regression_baseline,
)
from unmask.evaluate.ranking import baseline as ranking_baseline
from unmask.evaluate.ranking import ranking
from unmask.evaluate.spans import Reading, best_thresholds, reading_of, spans
from unmask.evaluate.spans import baseline as spans_baseline
from unmask.evaluate.tags import Scheme, tagging
from unmask.evaluate.tags import baseline as tagging_baseline
from unmask.evaluate.writing import writing
from unmask.records import Amounts
from unmask.tune.asking import PassageQuestion
from unmask.tune.asking_answers import SpanAnswer
from unmask.tune.output import Answer, Output
from unmask.tune.outputs.choose import ChoiceAnswer, Choose, choice_counts, right_places
from unmask.tune.outputs.classify import ClassAnswer, Classify
from unmask.tune.outputs.labels import Labels, LabelsAnswer
from unmask.tune.outputs.pair import PairClass
from unmask.tune.outputs.rank import Rank, RankAnswer, group_offsets, relevances
from unmask.tune.outputs.regress import NumberAnswer, Regress, amounts
from unmask.tune.outputs.span import Span
from unmask.tune.outputs.tag import Tag, TagAnswer
from unmask.tune.outputs.write import TextAnswer, Write
from unmask.tune.sheet import AnySheet, Sheet
from unmask.tune.texts import TextQuestion


def scores(output: Output, sheet: AnySheet, answers: Sequence[Answer]) -> Scores:
    """The scores that are usual for this kind of question; the first of them is the one to compare by."""
    match output:
        case Classify():
            said = output.numbers_of([one.said for one in cast(Sequence[ClassAnswer], answers)])
            return classification(output.numbers(sheet), said, len(output.labels))
        case PairClass():
            return scores(output.classes, sheet, answers)
        case Regress():
            numbers = np.array([one.said for one in cast(Sequence[NumberAnswer], answers)])
            return regression(amounts(sheet), numbers)
        case Span():
            right, reading = _right_pieces(sheet)
            return spans(right, [one.said for one in cast(Sequence[SpanAnswer], answers)], reading)
        case Labels():
            truths = output.bits([question.truth for question in sheet.questions])
            return labelling(truths, output.bits([one.said for one in cast(Sequence[LabelsAnswer], answers)]))
        case Choose():
            chosen = right_places([one.said for one in cast(Sequence[ChoiceAnswer], answers)], sheet)
            return choice(right_places([question.truth for question in sheet.questions], sheet), chosen)
        case Rank():
            told = np.concatenate([one.scores for one in cast(Sequence[RankAnswer], answers)])
            return ranking(relevances(sheet), told, group_offsets(sheet))
        case Tag():
            given = [one.said for one in cast(Sequence[TagAnswer], answers)]
            found = tagging([question.truth for question in sheet.questions], given, _scheme(output))
            return {"entity_f1": found["entity_f1"], **found} if output.spells else found
        case Write():
            return _written(_right_texts(sheet), [one.said for one in cast(Sequence[TextAnswer], answers)])
    raise AssertionError(f"nobody knows how good a {type(output).__name__} is")


def floor(output: Output, learned: AnySheet, judged: AnySheet) -> Scores:
    """What is scored by an answer that knows the training file and nothing of the text; empty where there is none."""
    match output:
        case Classify():
            return classification_baseline(output.numbers(learned), output.numbers(judged), len(output.labels))
        case PairClass():
            return floor(output.classes, learned, judged)
        case Regress():
            return regression_baseline(amounts(learned), amounts(judged))
        case Labels():
            sides = [output.bits([question.truth for question in sheet.questions]) for sheet in (learned, judged)]
            return labelling_baseline(*sides)
        case Choose():
            return choice_baseline(choice_counts(judged))
        case Rank():
            return ranking_baseline(relevances(judged), group_offsets(judged))
        case Tag():
            known, truth = ([question.truth for question in sheet.questions] for sheet in (learned, judged))
            return tagging_baseline(known, truth, _scheme(output))
        case Span():
            return spans_baseline(*_right_pieces(judged))
        case Write():
            return _written(_right_texts(judged), [question.source.lower() for question in judged.questions])
    return {}


def fit(output: Output, sheet: AnySheet, answers: Sequence[Answer]) -> tuple[Output, Sequence[Answer]]:
    """The output with what is chosen by the questions to judge by, and the answers as they are then.

    Only spans know such a choice: how much doubt keeps an answer back. It is the one with the best F1, as the script of
    SQuAD 2.0 finds it.
    """
    match output:
        case Span() if any(question.impossible for question in sheet.questions):
            truths, reading = _right_pieces(sheet)
            given = cast(Sequence[SpanAnswer], answers)
            doubt = np.array([one.doubt for one in given])
            best = best_thresholds(truths, [one.meant for one in given], doubt, reading)
            fitted = output.fitted(_between(best.f1.value, doubt))
            return fitted, fitted.reconsidered(given)
    return output, answers


def _between(threshold: float, doubt: Amounts) -> float:
    """A threshold that keeps the same answers back, halfway between the doubts beside it.

    The script puts it on the doubt of a question. There, the last digit of a sum on another device would decide whether
    that question is answered.
    """
    kept, held = doubt[doubt <= threshold], doubt[doubt > threshold]
    below = float(kept.max()) if len(kept) else float(held.min()) - 2.0
    above = float(held.min()) if len(held) else below + 2.0
    return (below + above) / 2


def _written(right: list[list[str]], said: Sequence[str]) -> Scores:
    """Scores of texts. Where no capital was ever written, as by an uncased tokenizer, none is asked for."""
    if all(text == text.lower() for text in said):
        right = [[text.lower() for text in texts] for texts in right]
    return writing(right, said)


def _right_texts(sheet: Sheet[TextQuestion]) -> list[list[str]]:
    """The one text that is right for each source."""
    return [[question.target] for question in sheet.questions]


def _right_pieces(sheet: Sheet[PassageQuestion]) -> tuple[list[list[str]], Reading]:
    """The right answers to each question, and by whose definition they are judged."""
    truths = [[piece.text for piece in question.answers] for question in sheet.questions]
    return truths, reading_of(truths, {question.passage for question in sheet.questions})


def _scheme(output: Tag) -> Scheme:
    """Entities are read as the CoNLL script reads them, in whatever scheme they are spelled."""
    return Scheme.CONLL if output.spells else Scheme.FREE
