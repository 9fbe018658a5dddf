"""A class for a pair, through the answer module: it learns what only a comparison can tell, and comes back."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from little_many import agreements
from little_task import little_model, little_tokenizer, reviews, write_lines

from unmask.codec import decode, encode
from unmask.errors import InputError, RecipeError
from unmask.evaluate.scoring import scores
from unmask.tune.job import read_job
from unmask.tune.output import Kind, Output
from unmask.tune.outputs.pair import Compare, PairClass
from unmask.tune.start import Origin, new_learner
from unmask.tune.tuning import Settings, Tuning
from unmask.tune.wish import Wish

PAIR = Wish(kind=Kind.PAIR)


def job_of(tmp_path, rows=agreements):
    train = write_lines(tmp_path / "train.jsonl", rows(48))
    return read_job(train, write_lines(tmp_path / "dev.jsonl", rows(16, first=100)), PAIR)


def test_it_is_a_value_with_the_classes_of_the_file(tmp_path):
    job = job_of(tmp_path)
    assert job.output == PairClass(("no", "yes"))
    assert decode(encode(job.output), Output) == job.output
    assert job.output.objective == Compare(2, "pair", 5, 0.1)
    assert any("compared word by word, in 5 steps" in sentence for sentence in job.told)


def test_one_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="a pair needs two texts in a row, found one"):
        job_of(tmp_path, reviews)
    for wrong in (lambda: Compare(2, steps=0), lambda: Compare(2, drop=1.0)):
        with pytest.raises(RecipeError, match="An answer module needs at least 1 step"):
            wrong()


def test_answers_are_probabilities_in_the_order_of_the_rows(tmp_path):
    job, model = job_of(tmp_path), little_model()
    tuning = Tuning(job, model, little_tokenizer(), Settings(length=24), "little")
    learner = new_learner(model, (job.output.objective,), 0, Origin.PRETRAINED)
    for parameter in learner.heads.parameters():
        torch.nn.init.normal_(parameter, 0, 0.3, generator=torch.Generator().manual_seed(2))
    judged = tuning.lay_out().judged
    answers = job.output.answer(learner, job.judged, judged)
    found = np.array([answer.probabilities for answer in answers])
    assert found.sum(axis=1) == pytest.approx(1)
    backwards = job.output.answer(learner, job.judged, job.output.lay_out(job.judged, tuning.tokenizer, _room(tuning)))
    assert [one.said for one in backwards] == [one.said for one in answers]
    assert set(scores(job.output, job.judged, answers)) == {"accuracy", "macro_f1", "f1", "matthews"}


def _room(tuning):
    from unmask.tune.encode import Room

    return Room(24, tuning.model.shape.segments)
