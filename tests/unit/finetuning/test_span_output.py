"""Answers copied from a passage, from files to a tuned network that says where they stand."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from little_task import little_model, write_lines

from unmask.core.codec import decode, encode
from unmask.core.errors import InputError
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.evaluation.by_task import fit_thresholds, scores, trivial_baseline
from unmask.finetuning.data.span_qa.predictions import (
    QAPrediction,
    SpanCandidate,
    no_answer_probabilities,
    save_submission,
    to_submission,
)
from unmask.finetuning.finetune import FineTune, FineTuneSettings
from unmask.finetuning.logits import token_logits
from unmask.finetuning.task_data import load_task_data
from unmask.finetuning.task_options import TaskOptions
from unmask.finetuning.tasks.protocol import TaskDefinition
from unmask.finetuning.tasks.span_qa import MAX_ANSWER_TOKENS, SpanQATask
from unmask.train.run_config import DistContext, RunConfig

CPU = torch.device("cpu")
NAMES, PLACES = "明红刚强丽芳", "东南西北"
TOKENIZER = train_tokenizer(
    WordPiece(120, min_count=1), [f"小{NAMES} 住 在 {PLACES} 边 ， 谁 住 哪 。 ？ 0 1 2 3 4 5 6 7 8 9"] * 2
)


@pytest.fixture(autouse=True)
def one_thread():
    """A network this small is slower on two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def homes(count, first=0, every=4):
    """Who lives where, and one question for each passage; every fourth asks for someone who is not there."""
    for i in range(first, first + count):
        name, place = NAMES[i % 6], PLACES[i // 6 % 4]
        passage = f"{i} 0 小{name}住在{place}边。"
        none = i % every == every - 1
        answers = [] if none else [{"text": f"{place}边", "answer_start": passage.index(place)}]
        question = f"{'谁' if none else '小' + name}住哪？"
        yield {
            "context": passage,
            "qas": [{"id": str(i), "question": question, "answers": answers, "is_impossible": none}],
        }


def job_of(tmp_path, **kinds):
    learned = write_lines(tmp_path / "train.jsonl", homes(96, **kinds))
    return load_task_data(learned, write_lines(tmp_path / "dev.jsonl", homes(24, first=200, **kinds)))


def tuned_on(job, folder, epochs=12.0, length=18):
    how = FineTuneSettings(lr=1e-2, epochs=epochs, batch_size=16, max_length=length)
    tuning = FineTune(job, little_model(), TOKENIZER, how, "little")
    folder.mkdir()
    course = tuning.encode()
    return tuning.train(
        course, RunConfig(device=CPU, keep_checkpoints=1, num_evals=1), DistContext(0, 1, CPU), folder
    ), course


def test_it_learns_to_point_and_to_be_silent(tmp_path):
    job = job_of(tmp_path)
    tuned, course = tuned_on(job, tmp_path / "run")
    answers = tuned.task.predict(tuned.learner, job.dev, course.dev)
    found = scores(tuned.task, job.dev, answers)
    assert found["exact_match"] > 0.9
    assert found["no_answer_exact"] > 0.8
    assert trivial_baseline(job.task, job.train, job.dev)["answer_f1"] == 0.25
    for question, answer in zip(job.dev.examples, answers, strict=True):
        line = answer.to_json()
        json.dumps(line, allow_nan=False)
        assert len(line["best"]) == 3
        for piece in line["best"]:
            assert question.passage.startswith(piece["text"], piece["start"])
        assert sum(answer.probabilities()) == pytest.approx(1)
        assert bool(answer.prediction) == (answer.no_answer_score <= 0) == ("start" in line)


def test_each_answer_is_the_best_legal_span_of_its_scores(tmp_path):
    job = job_of(tmp_path, every=100)
    tuned, course = tuned_on(job, tmp_path / "run", epochs=0.1, length=24)
    scores_T2 = token_logits(tuned.learner, "span", course.dev)
    rows, windows = course.dev.rows, course.dev.targets
    answers = replace(tuned.task, max_answer_tokens=2).predict(tuned.learner, job.dev, course.dev)
    for number, answer in enumerate(answers):
        assert windows.question[number] == number  # one window each
        at, passage = int(rows.offsets[number] + windows.first_token[number]), windows.passages[number]
        legal = [
            (float(scores_T2[at + i, 0]) + float(scores_T2[at + j, 1]), i, j)
            for i in range(len(passage.ids))
            for j in range(i, min(i + 2, len(passage.ids)))
        ]
        _, i, j = max(legal)
        assert answer.prediction == job.dev.examples[number].passage[passage.starts[i] : passage.ends[j]]
        assert math.isinf(answer.threshold)


def test_the_output_learns_how_long_answers_are_and_survives_as_json(tmp_path):
    job = job_of(tmp_path)
    assert job.task == SpanQATask(MAX_ANSWER_TOKENS, allow_no_answer=True)
    assert decode(
        json.loads(json.dumps(encode(job.task.with_threshold(1.5)))), TaskDefinition
    ) == job.task.with_threshold(1.5)
    assert list(job.task.notes(job.train))[1] == "24 of the questions (25%) have no answer"
    long = "东西南北" * 20
    path = write_lines(
        tmp_path / "long.jsonl", [{"question": "?", "context": f"{i}{long}", "answers": [long]} for i in range(4)]
    )
    assert load_task_data(path, None).task.max_answer_tokens == 80
    assert load_task_data(path, None, TaskOptions(max_answer_tokens=7)).task.max_answer_tokens == 7
    with pytest.raises(InputError, match="at least one token"):
        load_task_data(path, None, TaskOptions(max_answer_tokens=-1))


def test_nothing_can_be_learned_where_no_question_has_an_answer(tmp_path):
    with pytest.raises(InputError, match=r"train.jsonl: no question has an answer"):
        job_of(tmp_path, every=1)


def said(id, doubt, text="南边"):
    return QAPrediction(id, (SpanCandidate(text, 4, 2.0), SpanCandidate("南", 4, 1.0)), 2.0 + doubt, threshold=0.0)


def test_the_threshold_is_fitted_to_the_questions_to_judge_by(tmp_path):
    job = job_of(tmp_path)
    truths = job.dev.examples
    # All answers are right, and all questions are doubted; those without an answer a little more.
    answers = [
        said(
            question.id, 3.0 if question.is_impossible else 2.0, question.answers[0].text if question.answers else "边"
        )
        for question in truths
    ]
    assert scores(job.task, job.dev, answers)["exact_match"] == pytest.approx(0.25)
    better, again = fit_thresholds(job.task, job.dev, answers)
    assert better.threshold == pytest.approx(2.5)  # between the doubts: on one of them, the last digit would decide
    assert scores(better, job.dev, again)["exact_match"] == 1.0


@pytest.mark.parametrize("right", [True, False])
def test_no_question_stands_on_the_threshold(tmp_path, right):
    job = job_of(tmp_path)
    truths = job.dev.examples
    answers = [
        said(question.id, number - 9.0, question.answers[0].text if right and question.answers else "无")
        for number, question in enumerate(sorted(truths, key=lambda one: one.is_impossible))
    ]
    answers = [next(one for one in answers if one.id == question.id) for question in truths]
    better, again = fit_thresholds(job.task, job.dev, answers)
    assert min(abs(one.no_answer_score - better.threshold) for one in again) >= 0.5
    assert sum(bool(one.prediction) for one in again) == (sum(not one.is_impossible for one in truths) if right else 0)


def test_nothing_is_fitted_where_every_question_has_an_answer(tmp_path):
    job = job_of(tmp_path, every=1000)
    answers = [replace(said(question.id, 9.0), threshold=math.inf) for question in job.dev.examples]
    assert fit_thresholds(job.task, job.dev, answers) == (job.task, answers)
    assert all(answer.prediction for answer in answers)
    assert trivial_baseline(job.task, job.train, job.dev)["answer_f1"] == 0


def test_a_silent_answer_tells_how_likely_silence_is():
    line = said("a", 1.0).to_json()
    weights = [math.exp(2.0), math.exp(1.0), math.exp(3.0)]
    assert line["prediction"] == ""
    assert "start" not in line
    assert line["probability"] == pytest.approx(weights[2] / sum(weights), abs=1e-6)
    assert line["no_answer"] == 1.0
    assert [piece["text"] for piece in line["best"]] == ["南边", "南"]


def test_the_files_that_the_official_scripts_read(tmp_path):
    answers = [said("a", -1.0), said("b", 1.0)]
    assert to_submission(answers) == {"a": "南边", "b": ""}
    assert no_answer_probabilities(answers)["a"] == pytest.approx(1 / (1 + math.e))
    assert no_answer_probabilities(answers)["b"] > 0.5
    save_submission(tmp_path, answers)
    assert json.loads((tmp_path / "submission.json").read_text(encoding="utf-8")) == {"a": "南边", "b": ""}
    assert json.loads((tmp_path / "na_prob.json").read_text(encoding="utf-8")) == no_answer_probabilities(answers)


def test_no_file_of_silence_where_something_is_always_said(tmp_path):
    save_submission(tmp_path, [replace(said("a", 5.0), threshold=math.inf)])
    assert json.loads((tmp_path / "submission.json").read_text(encoding="utf-8")) == {"a": "南边"}
    assert not (tmp_path / "na_prob.json").exists()
