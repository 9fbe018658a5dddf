"""A fine-tune from files to a saved network: it learns, it goes on after a stop, and it comes back bit for bit."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from little_task import TRUNK, little_model, little_tokenizer, ratings, reviews, write_lines

from unmask.core.errors import InputError
from unmask.finetuning.artifact import BaseModelRef, load_finetuned, save_finetuned, save_predictions
from unmask.finetuning.finetune import FineTune, FineTuneSettings, choose_max_length
from unmask.finetuning.init_weights import StartFrom, build_model, with_dropout
from unmask.finetuning.logits import row_logits
from unmask.finetuning.task_data import load_task_data
from unmask.finetuning.tasks.regression import target_numbers
from unmask.nets.batch.batch import collate
from unmask.objectives.heads.common import RowRegressionHead
from unmask.train.run_config import DistContext, RunConfig

CPU = torch.device("cpu")
RUN, ALONE = RunConfig(device=CPU, keep_checkpoints=1, num_evals=2), DistContext(0, 1, CPU)
TOKENIZER = little_tokenizer()


@pytest.fixture(autouse=True)
def one_thread():
    """A network this small is slower on two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def tuning_of(tmp_path, rows=reviews, settings=None, **changes) -> FineTune:
    train = write_lines(tmp_path / "train.jsonl", rows(60))
    dev = write_lines(tmp_path / "dev.jsonl", rows(20, first=100))
    how = settings or FineTuneSettings(lr=3e-3, epochs=8, batch_size=8, max_length=24)
    return FineTune(load_task_data(train, dev), little_model(), TOKENIZER, replace(how, **changes), "little")


def trained(tuning, folder, listeners=()):
    folder.mkdir(exist_ok=True)
    return tuning.train(tuning.encode(), RUN, ALONE, folder, listeners)


def judged(tuning, tuned):
    return tuned.predict(tuning.data.dev)


def nowhere(root):
    raise AssertionError("the whole network was saved")


def row_head(learner):
    (head,) = learner.heads.values()
    return head.row_head


def test_it_learns_classes_and_comes_back_bit_for_bit(tmp_path):
    tuning = tuning_of(tmp_path)
    tuned = trained(tuning, tmp_path / "run")
    said = judged(tuning, tuned)
    pairs = zip(said, tuning.data.dev.examples, strict=True)
    assert np.mean([answer.prediction == question.truth for answer, question in pairs]) > 0.9
    assert all(sum(answer.probabilities) == pytest.approx(1) for answer in said)

    save_predictions(tmp_path / "run", tuning.data.dev, said)
    save_finetuned(tuned, tmp_path / "run", BaseModelRef("little"), {"metrics": {"accuracy": 1.0}})
    back = load_finetuned(tmp_path / "run", nowhere)
    assert judged(tuning, back) == said
    assert (back.task, back.columns, back.max_length) == (tuned.task, tuned.columns, tuned.max_length)
    lines = [json.loads(line) for line in (tmp_path / "run/predictions.jsonl").read_text().splitlines()]
    assert [line["prediction"] for line in lines] == [answer.prediction for answer in said]
    assert lines[0].keys() == {"text", "label", "prediction", "probability"}


def test_it_learns_numbers_in_the_units_of_the_file(tmp_path):
    tuning = tuning_of(tmp_path, ratings, epochs=16)
    tuned = trained(tuning, tmp_path / "run")
    said, truth = judged(tuning, tuned), target_numbers(tuning.data.dev)
    numbers = np.array([answer.prediction for answer in said])
    assert np.corrcoef(numbers, truth)[0, 1] > 0.8
    assert np.sqrt(((numbers - truth) ** 2).mean()) < 35  # the scores themselves are 50 away from their mean

    save_predictions(tmp_path / "run", tuning.data.dev, said)
    save_finetuned(tuned, tmp_path / "run", BaseModelRef("little"), {})
    assert judged(tuning, load_finetuned(tmp_path / "run", nowhere)) == said
    line = json.loads((tmp_path / "run/predictions.jsonl").read_text().splitlines()[0])
    assert line.keys() == {"text", "label", "prediction"}
    assert len(line["text"]) == 2


class Stop(Exception):
    """Someone pulls the plug."""


@pytest.mark.parametrize("rows", [reviews, ratings])
def test_a_stopped_run_ends_with_the_same_weights(tmp_path, rows):
    tuning = tuning_of(tmp_path, rows, epochs=2)

    def stop(line):
        if line["step"] == 11:
            raise Stop

    with pytest.raises(Stop):
        trained(tuning, tmp_path / "stopped", [stop])
    again, whole = trained(tuning, tmp_path / "stopped"), trained(tuning, tmp_path / "whole")
    for name, tensor in whole.learner.named_weights().items():
        assert torch.equal(tensor, again.learner.named_weights()[name]), name


def test_the_start_decides_what_the_trunk_knows_and_never_the_new_head(tmp_path):
    model, asked = little_model(), (tuning_of(tmp_path).data.task.objective,)
    known, drawn = (build_model(model, asked, 5, start) for start in (StartFrom.PRETRAINED, StartFrom.SCRATCH))
    for name, tensor in model.network.state_dict().items():
        assert torch.equal(known.network.state_dict()[name], tensor)
    assert not torch.equal(drawn.network.embed.token.weight, model.network.embed.token.weight)
    assert torch.equal(row_head(known).pool.weight, model.row_head.pool.weight)
    assert torch.equal(row_head(known).classify.weight, row_head(drawn).classify.weight)
    assert not row_head(known).classify.bias.any()
    without = build_model(little_model(row=False), asked, 5, StartFrom.PRETRAINED)
    assert torch.equal(row_head(without).pool.weight, row_head(drawn).pool.weight)


def test_dropout_stands_before_the_classes_and_only_while_learning(tmp_path):
    tuning = tuning_of(tmp_path)
    learner = build_model(
        little_model(trunk=replace(TRUNK, dropout=0.5)), (tuning.data.task.objective,), 0, StartFrom.PRETRAINED
    )
    head, first_BD = row_head(learner), torch.ones(64, TRUNK.width)
    head.train()
    assert len(head(first_BD).unique(dim=0)) > 1
    head.eval()
    assert len(head(first_BD).unique(dim=0)) == 1


def test_dropout_may_be_another_than_in_pretraining(tmp_path):
    tuning = tuning_of(tmp_path)
    dropping = replace(tuning, model=with_dropout(tuning.model, 0.25))
    assert dropping.model.config == replace(TRUNK, dropout=0.25, attention_dropout=0.25)
    assert dropping.describe()["source"] == tuning.describe()["source"]
    assert dropping.describe() != tuning.describe()
    learner = build_model(dropping.model, (tuning.data.task.objective,), 0, StartFrom.PRETRAINED)
    assert learner.network.config.dropout == 0.25


def test_squared_errors_are_summed(tmp_path):
    tuning = tuning_of(tmp_path, ratings)
    course = tuning.encode()
    learner = build_model(tuning.model, (course.objective,), 0, StartFrom.PRETRAINED).eval()
    said = row_logits(learner, "rate", course.dev)[:, 0]
    batch = collate(course.dev.take(np.arange(20)))
    (term,) = learner(batch, (course.objective,))
    assert isinstance(learner.heads["rate"], RowRegressionHead)
    assert float(term.total.detach()) == pytest.approx(((said - course.dev.targets.value) ** 2).sum(), rel=1e-5)
    assert (int(term.correct), term.count) == (0, course.objective.num_predictions(course.dev.take(np.arange(20))))


def test_answers_come_in_the_order_of_the_rows(tmp_path):
    tuning = tuning_of(tmp_path)
    course = tuning.encode()
    learner = build_model(tuning.model, (course.objective,), 0, StartFrom.PRETRAINED).eval()
    together = row_logits(learner, "judge", course.train)
    with torch.no_grad():
        for number in range(0, len(course.train), 7):
            batch = collate(course.train.without_targets(np.array([number])))
            alone = row_head(learner)(learner.network(batch.tokens).last_TD[:1])
            assert together[number] == pytest.approx(alone[0].numpy(), abs=1e-5)


def test_what_decides_the_result_is_described(tmp_path):
    tuning = tuning_of(tmp_path)
    assert tuning.describe() == tuning_of(tmp_path).describe()
    json.dumps(tuning.describe())
    others = (
        tuning_of(tmp_path, seed=1),
        tuning_of(tmp_path, start=StartFrom.SCRATCH),
        FineTune(tuning.data, little_model(trunk=replace(TRUNK, ffn_width=8)), TOKENIZER, tuning.settings, "little"),
        tuning_of(tmp_path, ratings),
    )
    assert all(other.describe() != tuning.describe() for other in others)


def test_rows_fit_into_the_network():
    model = little_model()
    assert choose_max_length(model, None) == 24
    assert choose_max_length(model, 8) == 8
    with pytest.raises(InputError, match="the model has 24 positions only"):
        choose_max_length(model, 64)


def test_what_is_no_tuned_network_is_refused(tmp_path):
    tuning = tuning_of(tmp_path, epochs=0.1)
    tuned = trained(tuning, tmp_path / "run")
    with pytest.raises(InputError, match=r"it has no task\.json"):
        load_finetuned(tmp_path / "run", nowhere)
    save_finetuned(tuned, tmp_path / "run", BaseModelRef("little"), {})
    weights = tmp_path / "run/model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(InputError, match="its digest differs"):
        load_finetuned(tmp_path / "run", nowhere)


def test_settings_that_cannot_work_are_refused():
    for wrong in ({"epochs": 0}, {"epochs": float("inf")}, {"batch_size": 0}):
        with pytest.raises(InputError):
            FineTuneSettings(**wrong)


def test_the_truths_of_rows_are_those_of_the_sheet(tmp_path):
    tuning = tuning_of(tmp_path)
    course = tuning.encode()
    truths = [question.truth for question in tuning.data.train.examples]
    assert [tuning.data.task.labels[i] for i in course.train.targets.value.tolist()] == truths
