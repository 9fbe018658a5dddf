"""The answers of a tuned network, from transformers alone: its pipelines, and the code on the card of the export."""

from itertools import pairwise

import numpy as np
import pytest
import torch
import transformers
from small_tuned import (
    CHOICES,
    LABEL_ROWS,
    PAIR_ROWS,
    PAIRS,
    RANKED,
    ROWS,
    TAG_ROWS,
    TEXTS,
    code_on_card,
    small_tuned,
    tuned_folder,
)

from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.span_qa.questions import QAExample
from unmask.finetuning.data.tagging.schemes import TagScheme
from unmask.finetuning.export.hf import export_finetuned
from unmask.finetuning.logits import softmax, token_logits
from unmask.finetuning.tasks.classification import ClassificationTask
from unmask.finetuning.tasks.multilabel import MultiLabelTask
from unmask.finetuning.tasks.multiple_choice import MultipleChoiceTask, choice_rows
from unmask.finetuning.tasks.ranking import RankingTask
from unmask.finetuning.tasks.regression import RegressionTask
from unmask.finetuning.tasks.span_qa import SpanQATask
from unmask.finetuning.tasks.tagging import TaggingTask

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
NEAR = {"abs": 1e-5}


@pytest.fixture
def exported(tmp_path):
    """Save a network, ask it, and export it."""

    def make(output, questions):
        ours = tuned_folder(tmp_path / "tuned", small_tuned(output), questions)
        export_finetuned(tmp_path / "tuned", tmp_path / "out")
        return ours, tmp_path / "out"

    return make


def on_card(folder, **changes):
    """Run the code of the card with other inputs; the names that it leaves."""
    lines = code_on_card(folder).splitlines()
    left: dict[str, object] = {}
    for old, new in changes.items():
        (place,) = (number for number, line in enumerate(lines) if line.startswith(f"{old}, "))
        lines[place] = new
    exec("\n".join(lines), left)
    return left


def test_classes_of_texts_and_pairs(exported):
    labels = ("中立", "反对", "同意")
    ours, folder = exported(ClassificationTask(labels), PAIR_ROWS)
    answer = on_card(folder)["answer"]
    for (a, b), mine in zip(PAIRS, ours, strict=True):
        theirs = answer({"text": a, "text_pair": b})
        assert theirs[0]["label"] == mine.prediction
        likely = {one["label"]: one["score"] for one in theirs}
        assert [likely[label] for label in labels] == pytest.approx(mine.probabilities, **NEAR)
    assert len({mine.prediction for mine in ours} | {mine.probabilities for mine in ours}) > 3  # the rows do differ


def test_several_labels(exported):
    ours, folder = exported(MultiLabelTask(("a", "b", "c", "d")), LABEL_ROWS)
    answer = on_card(folder)["answer"]
    for text, mine in zip(TEXTS, ours, strict=True):
        said = [one for one in answer([text])[0] if one["score"] >= 0.5]
        assert tuple(one["label"] for one in said) == mine.prediction
        assert [one["score"] for one in said] == pytest.approx(mine.probabilities, **NEAR)
    assert any(mine.prediction for mine in ours)


def test_numbers(exported):
    ours, folder = exported(RegressionTask(mean=2.0, std=3.0), ROWS)
    answer = on_card(folder)["answer"]
    theirs = [answer([text])[0][0]["score"] for text in TEXTS]
    assert theirs == pytest.approx([mine.prediction for mine in ours], **NEAR)


def test_a_ranking_is_one_number_for_each_candidate(exported):
    (ours,), folder = exported(RankingTask(), RANKED)
    answer = on_card(folder)["answer"]
    (asked,) = RANKED
    theirs = [answer({"text": asked.query, "text_pair": one})[0]["score"] for one in asked.candidates]
    assert theirs == pytest.approx(ours.scores, **NEAR)


def test_tags_and_entities(exported):
    output = TaggingTask(("B-LOC", "I-LOC", "B-PER", "I-PER", "O"), TagScheme.BIO)
    ours, folder = exported(output, TAG_ROWS)
    tuned = small_tuned(output)
    sheet = ExampleSet("dev", TAG_ROWS, ("",) * len(TAG_ROWS))
    exercise = tuned.encode(sheet)
    likely_TC = softmax(token_logits(tuned.learner, "tag", exercise))
    by_row = [likely_TC[first + 1 : end - 1] for first, end in pairwise(exercise.rows.offsets.tolist())]
    whole, pieces = on_card(folder)["answer"], transformers.pipeline("token-classification", str(folder))
    pieces._postprocess_params["ignore_labels"] = []
    for question, mine, likely_LC in zip(TAG_ROWS, ours, by_row, strict=True):
        text = question.text(0, len(question.words))
        single = pieces(text)
        assert [one["entity"] for one in single] == [output.labels[n] for n in likely_LC.argmax(1)]
        assert [one["score"] for one in single] == pytest.approx(likely_LC.max(1), **NEAR)
        found = [(one["entity_group"], text[one["start"] : one["end"]]) for one in whole(text)]
        assert found == [(one.type, one.text) for one in mine.entities]
    assert any(mine.entities for mine in ours)


@pytest.mark.parametrize("threshold", [-100.0, 0.0, 0.7, 100.0])
@pytest.mark.parametrize("longest", [2, 30])
def test_spans_and_silence(exported, threshold, longest):
    passages = ("今天天气真好，我们去公园。", "The quick brown fox jumps.", "the lazy dog, the fox")
    asked = tuple(QAExample(str(n), "天气?", passage) for n, passage in enumerate(passages))
    ours, folder = exported(SpanQATask(longest, allow_no_answer=True, threshold=threshold), asked)
    for passage, mine in zip(passages, ours, strict=True):
        left = on_card(folder, question=f"question, passage = '天气?', {passage!r}")
        assert left["found"] == mine.prediction
        assert float(left["scores"].detach()[0, 0]) == pytest.approx(mine.null_score, **NEAR)
        best = float(left["scores"].detach()[left["first"], left["last"]])
        assert best == pytest.approx(mine.best[0].score, **NEAR)
    if abs(threshold) == 100:
        assert {bool(mine.prediction) for mine in ours} == {threshold > 0}


def test_something_is_always_said_where_training_had_no_silence(exported):
    (ours,), folder = exported(SpanQATask(9), (QAExample("1", "天气?", "今天天气真好"),))
    assert on_card(folder, question="question, passage = '天气?', '今天天气真好'")["found"] == ours.prediction != ""


def test_choices(exported):
    ours, folder = exported(MultipleChoiceTask(), CHOICES)
    network = transformers.BertForMultipleChoice.from_pretrained(folder).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    for question, mine in zip(CHOICES, ours, strict=True):
        first, second = zip(*choice_rows(question), strict=True)
        inputs = words(list(first), list(second), padding=True, return_tensors="pt")
        with torch.no_grad():
            likely = network(**{name: inputs[name][None] for name in inputs}).logits[0].softmax(-1)
        assert likely.tolist() == pytest.approx(mine.probabilities, **NEAR)
        assert question.choices[int(likely.argmax())] == mine.prediction
    asked = CHOICES[1]
    left = on_card(folder, question=f"question, choices = {asked.context[0]!r}, {list(asked.choices)!r}")
    np.testing.assert_allclose(left["likely"].numpy(), ours[1].probabilities, atol=1e-5)
