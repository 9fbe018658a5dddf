"""A full fine-tune from files to a saved network: it learns, it goes on after a stop, and it comes back bit for bit."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from little_task import TRUNK, little_model, little_tokenizer, ratings, reviews, write_lines

from unmask.errors import InputError
from unmask.nets.batch import collate
from unmask.objectives.heads import SayAmount
from unmask.records import Amount, Instance
from unmask.train.processes import Processes
from unmask.train.run import Run
from unmask.tune.course import Answered
from unmask.tune.full import FullTune, Settings, fitting_length
from unmask.tune.job import read_job
from unmask.tune.predict import answer
from unmask.tune.saved import load_tuned, save_tuned
from unmask.tune.start import Origin, new_learner, row_head

CPU = torch.device("cpu")
RUN, ALONE = Run(device=CPU, keep=1, trials=2), Processes(0, 1, CPU)
TOKENIZER = little_tokenizer()


@pytest.fixture(autouse=True)
def one_thread():
    """A network this small is slower on two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def full_tune(tmp_path, rows=reviews, settings=None, **changes) -> FullTune:
    train = write_lines(tmp_path / "train.jsonl", rows(60))
    dev = write_lines(tmp_path / "dev.jsonl", rows(20, first=100))
    how = settings or Settings(rate=3e-3, epochs=8, batch=8, length=24)
    return FullTune(read_job(train, dev), little_model(), TOKENIZER, replace(how, **changes), "little")


def trained(full, folder, listeners=()):
    folder.mkdir(exist_ok=True)
    return full.train(full.lay_out(), RUN, ALONE, folder, listeners)


def judged(full, tuned):
    return tuned.predict(full.job.judged.texts)


def test_it_learns_classes_and_comes_back_bit_for_bit(tmp_path):
    full = full_tune(tmp_path)
    tuned = trained(full, tmp_path / "run")
    said = judged(full, tuned)
    assert np.mean([a == b for a, b in zip(said.answers, full.job.judged.truths, strict=True)]) > 0.9
    assert said.probabilities_NC.sum(axis=1) == pytest.approx(1)

    save_tuned(tuned, tmp_path / "run", full.job.judged, said, {"metrics": {"accuracy": 1.0}, "source": "little"})
    back = load_tuned(tmp_path / "run")
    assert (judged(full, back).scores_NC == said.scores_NC).all()
    assert (back.task, back.fields, back.length) == (tuned.task, tuned.fields, tuned.length)
    lines = [json.loads(line) for line in (tmp_path / "run/predictions.jsonl").read_text().splitlines()]
    assert [line["said"] for line in lines] == list(said.answers)
    assert lines[0].keys() == {"text", "label", "said", "probability"}


def test_it_learns_numbers_in_the_units_of_the_file(tmp_path):
    full = full_tune(tmp_path, ratings, epochs=16)
    tuned = trained(full, tmp_path / "run")
    said, truth = judged(full, tuned), np.array([float(one) for one in full.job.judged.truths])
    assert np.corrcoef(said.amounts, truth)[0, 1] > 0.8
    assert np.sqrt(((said.amounts - truth) ** 2).mean()) < 35  # the scores themselves are 50 away from their mean
    assert said.scores_NC[:, 0] == pytest.approx(said.amounts)  # the head itself says what the file says

    save_tuned(tuned, tmp_path / "run", full.job.judged, said, {})
    assert (judged(full, load_tuned(tmp_path / "run")).scores_NC == said.scores_NC).all()
    line = json.loads((tmp_path / "run/predictions.jsonl").read_text().splitlines()[0])
    assert line.keys() == {"text", "label", "said"}
    assert len(line["text"]) == 2


class Stop(Exception):
    """Someone pulls the plug."""


@pytest.mark.parametrize("rows", [reviews, ratings])
def test_a_stopped_run_ends_with_the_same_weights(tmp_path, rows):
    full = full_tune(tmp_path, rows, epochs=2)

    def stop(line):
        if line["step"] == 11:
            raise Stop

    with pytest.raises(Stop):
        trained(full, tmp_path / "stopped", [stop])
    again, whole = trained(full, tmp_path / "stopped"), trained(full, tmp_path / "whole")
    for name, tensor in whole.learner.weights().items():
        assert torch.equal(tensor, again.learner.weights()[name]), name


def test_the_start_decides_what_the_trunk_knows_and_never_the_new_head(tmp_path):
    model, task = little_model(), full_tune(tmp_path).job.task
    known, drawn = (new_learner(model, task, 5, start) for start in (Origin.PRETRAINED, Origin.SCRATCH))
    for name, tensor in model.trunk.state_dict().items():
        assert torch.equal(known.trunk.state_dict()[name], tensor)
    assert not torch.equal(drawn.trunk.embed.token.weight, model.trunk.embed.token.weight)
    assert torch.equal(row_head(known, task).pool.weight, model.row.pool.weight)
    assert torch.equal(row_head(known, task).classify.weight, row_head(drawn, task).classify.weight)
    assert not row_head(known, task).classify.bias.any()
    without = new_learner(little_model(row=False), task, 5, Origin.PRETRAINED)
    assert torch.equal(row_head(without, task).pool.weight, row_head(drawn, task).pool.weight)


def test_dropout_stands_before_the_classes_and_only_while_learning(tmp_path):
    full = full_tune(tmp_path)
    learner = new_learner(little_model(trunk=replace(TRUNK, dropout=0.5)), full.job.task, 0, Origin.PRETRAINED)
    head, first_BD = row_head(learner, full.job.task), torch.ones(64, TRUNK.width)
    head.train()
    assert len(head(first_BD).unique(dim=0)) > 1
    head.eval()
    assert len(head(first_BD).unique(dim=0)) == 1


def test_squared_errors_are_summed(tmp_path):
    full = full_tune(tmp_path, ratings)
    learner, course = new_learner(full.model, full.job.task, 0, Origin.PRETRAINED).eval(), full.lay_out()
    said = answer(learner, full.job.task, course.judged.rows).scores_NC[:, 0]
    batch = collate(course.judged.at(np.arange(20)))
    (term,) = learner(batch, (course.objective,))
    assert isinstance(learner.heads["rate"], SayAmount)
    assert isinstance(course.judged.truth, Amount)
    assert float(term.total.detach()) == pytest.approx(((said - course.judged.truth.value) ** 2).sum(), rel=1e-5)
    assert (int(term.right), term.count) == (0, course.objective.asked(course.judged.at(np.arange(20))))


def test_answers_come_in_the_order_of_the_rows(tmp_path):
    full = full_tune(tmp_path)
    learner, rows = new_learner(full.model, full.job.task, 0, Origin.PRETRAINED).eval(), full.lay_out().learned.rows
    together = answer(learner, full.job.task, rows).scores_NC
    with torch.no_grad():
        for number in range(0, len(rows), 7):
            batch = collate(Instance(rows.take(np.array([number])), ()))
            alone = row_head(learner, full.job.task)(learner.trunk(batch.tokens).last_TD[:1])
            assert together[number] == pytest.approx(alone[0].numpy(), abs=1e-5)


def test_what_decides_the_result_is_described(tmp_path):
    full = full_tune(tmp_path)
    assert full.describe() == full_tune(tmp_path).describe()
    json.dumps(full.describe())
    others = (
        full_tune(tmp_path, seed=1),
        full_tune(tmp_path, start=Origin.SCRATCH),
        FullTune(full.job, little_model(trunk=replace(TRUNK, inner=8)), TOKENIZER, full.settings, "little"),
        full_tune(tmp_path, ratings),
    )
    assert all(other.describe() != full.describe() for other in others)


def test_rows_fit_into_the_network():
    model = little_model()
    assert fitting_length(model, None) == 24
    assert fitting_length(model, 8) == 8
    with pytest.raises(InputError, match="the network has 24 positions only"):
        fitting_length(model, 64)


def test_what_is_no_tuned_network_is_refused(tmp_path):
    full = full_tune(tmp_path, epochs=0.1)
    tuned = trained(full, tmp_path / "run")
    with pytest.raises(InputError, match=r"it has no task\.json"):
        load_tuned(tmp_path / "run")
    save_tuned(tuned, tmp_path / "run", full.job.judged, judged(full, tuned), {})
    with pytest.raises(InputError, match="rows of 1 texts"):
        load_tuned(tmp_path / "run").predict([("a", "b")])
    with pytest.raises(InputError, match="Give each row as a tuple"):
        load_tuned(tmp_path / "run").predict(["a"])
    weights = tmp_path / "run/model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(InputError, match="its digest differs"):
        load_tuned(tmp_path / "run")


def test_settings_that_cannot_work_are_refused():
    for wrong in ({"epochs": 0}, {"epochs": float("inf")}, {"batch": 0}):
        with pytest.raises(InputError):
            Settings(**wrong)


def test_the_truths_of_rows_are_those_of_the_sheet(tmp_path):
    full = full_tune(tmp_path)
    course = full.lay_out()
    assert isinstance(course.learned, Answered)
    assert [full.job.task.labels[i] for i in course.learned.truth.value.tolist()] == list(full.job.learned.truths)
