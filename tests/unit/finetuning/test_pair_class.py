"""A class for a pair, through the answer module: it learns what only a comparison can tell, and comes back."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from little_many import agreements
from little_task import little_model, little_tokenizer, reviews, write_lines

from unmask.core.codec import decode, encode
from unmask.core.errors import InputError, RecipeError
from unmask.evaluation.by_task import scores
from unmask.finetuning.finetune import FineTune, FineTuneSettings
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.task_data import load_task_data
from unmask.finetuning.task_options import TaskOptions
from unmask.finetuning.tasks.protocol import TaskDefinition, TaskType
from unmask.finetuning.tasks.san_pair import SANClassification, SANPairTask

PAIR = TaskOptions(task_type=TaskType.SAN_PAIR)


def job_of(tmp_path, rows=agreements):
    train = write_lines(tmp_path / "train.jsonl", rows(48))
    return load_task_data(train, write_lines(tmp_path / "dev.jsonl", rows(16, first=100)), PAIR)


def test_it_is_a_value_with_the_classes_of_the_file(tmp_path):
    job = job_of(tmp_path)
    assert job.task == SANPairTask(("no", "yes"))
    assert decode(encode(job.task), TaskDefinition) == job.task
    assert job.task.objective == SANClassification(2, "pair", 5, 0.1)
    assert any("compared word by word, in 5 steps" in sentence for sentence in job.notes)


def test_one_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="a pair needs two texts in a row, found one"):
        job_of(tmp_path, reviews)
    for wrong in (lambda: SANClassification(2, num_steps=0), lambda: SANClassification(2, dropout=1.0)):
        with pytest.raises(RecipeError, match="The SAN answer module needs at least 1 step"):
            wrong()


def test_answers_are_probabilities_in_the_order_of_the_rows(tmp_path):
    job, model = job_of(tmp_path), little_model()
    tuning = FineTune(job, model, little_tokenizer(), FineTuneSettings(max_length=24), "little")
    learner = build_model(model, (job.task.objective,), 0, StartFrom.PRETRAINED)
    for parameter in learner.heads.parameters():
        torch.nn.init.normal_(parameter, 0, 0.3, generator=torch.Generator().manual_seed(2))
    judged = tuning.encode().dev
    answers = job.task.predict(learner, job.dev, judged)
    found = np.array([answer.probabilities for answer in answers])
    assert found.sum(axis=1) == pytest.approx(1)
    backwards = job.task.predict(learner, job.dev, job.task.encode(job.dev, tuning.tokenizer, _room(tuning)))
    assert [one.prediction for one in backwards] == [one.prediction for one in answers]
    assert set(scores(job.task, job.dev, answers)) == {"accuracy", "macro_f1", "f1", "matthews"}


def _room(tuning):
    from unmask.finetuning.data.encode import LengthLimits

    return LengthLimits(24, tuning.model.config.num_segments)
