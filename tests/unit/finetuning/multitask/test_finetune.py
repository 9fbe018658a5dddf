"""Several tasks on one trunk: all are learned, heads rest in turn, a stop changes nothing, everything comes back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from little_many import write_tasks
from little_task import little_model, little_tokenizer
from safetensors.torch import load_file

from unmask.config.optim import Adamax, AdamW
from unmask.core.errors import InputError
from unmask.finetuning.export.hf import open_finetuned
from unmask.finetuning.finetune import FineTuneSettings
from unmask.finetuning.init_weights import StartFrom
from unmask.finetuning.multitask.artifact import save_head
from unmask.finetuning.multitask.finetune import MultiTaskFineTune, OptimizerName, encoder_only
from unmask.finetuning.multitask.schedule import TaskOrder
from unmask.finetuning.multitask.task_file import read_tasks
from unmask.loading.encoder_folder import load_encoder, save_encoder
from unmask.loading.open_model import open_model
from unmask.train.batches.recipe_batches import SINGLE_PROCESS as ALONE_CREW
from unmask.train.batches.recipe_batches import RunPosition
from unmask.train.build_step import build_step_runner
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.step import DeviceBatch

CPU = torch.device("cpu")
RUN, ALONE = RunConfig(device=CPU, keep_checkpoints=1, num_evals=2), DistContext(0, 1, CPU)
HOW = FineTuneSettings(lr=3e-3, epochs=2, batch_size=8, max_length=24)
TOKENIZER = little_tokenizer()


@pytest.fixture(autouse=True)
def one_thread():
    """A network this small is slower on two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def together(tmp_path, **changes) -> MultiTaskFineTune:
    made = MultiTaskFineTune(read_tasks(write_tasks(tmp_path)), little_model(), TOKENIZER, HOW, "little")
    return replace(made, **changes)


def trained(made: MultiTaskFineTune, folder, listeners=()):
    folder.mkdir(exist_ok=True)
    return made.train(made.encode(), RUN, ALONE, folder, listeners)


def answers_of(task, tuned):
    return [answer.to_json() for answer in tuned.predict(task.data.dev)]


@pytest.mark.parametrize(("mover", "rate"), [(OptimizerName.ADAMW, 5e-3), (OptimizerName.ADAMAX, 2e-2)])
def test_all_tasks_are_learned(tmp_path, mover, rate):
    lines = []
    made = together(tmp_path, settings=replace(HOW, epochs=20, lr=rate), optimizer=mover)
    learner = trained(made, tmp_path / "run", [lines.append])
    first, *_, last = [line for line in lines if line["kind"] == "eval"]
    assert list(last["loss"]) == list(last["count"]) == ["mood", "same", "like"]
    assert all(last["loss"][name] < 0.5 * first["loss"][name] for name in last["loss"])
    assert last["accuracy"]["mood"] > 0.9
    assert {line["task"] for line in lines if line["kind"] == "step"} == {"mood", "same", "like"}
    tuned = made.finetuned_task(learner, made.tasks[0])
    said = [answer.prediction for answer in tuned.predict(made.tasks[0].data.dev)]
    truths = [question.truth for question in made.tasks[0].data.dev.examples]
    assert np.mean([a == b for a, b in zip(said, truths, strict=True)]) == pytest.approx(
        last["accuracy"]["mood"], abs=1e-4
    )


def test_a_step_moves_the_trunk_and_one_head(tmp_path):
    made = together(tmp_path)
    course = made.encode()
    learner = made.build_model(course)
    worker = build_step_runner(learner, made.optim_config, course.heads_vary, 0, RUN, ALONE)
    before = {name: tensor.clone() for name, tensor in learner.named_weights().items()}
    loaded = DeviceBatch.of(course.batch(RunPosition(0, 0.5), ALONE_CREW), CPU)
    worker.apply_gradients(worker.backward(loaded, loaded.step_batch.num_predictions(), 0))
    moved = {
        name.split(".")[1] for name, tensor in learner.named_weights().items() if not torch.equal(tensor, before[name])
    }
    heads = {name for name in moved if name in ("mood", "same", "like")}
    assert heads == {loaded.step_batch.task_name}
    assert "layers" in moved


def test_a_weight_scales_the_gradient(tmp_path):
    found = []
    for weight in (1.0, 0.25):
        made = together(tmp_path)
        made = replace(made, tasks=tuple(replace(task, weight=weight) for task in made.tasks))
        course = made.encode()
        learner = made.build_model(course)
        worker = build_step_runner(learner, made.optim_config, True, 0, RUN, ALONE)
        loaded = DeviceBatch.of(course.batch(RunPosition(0, 0.5), ALONE_CREW), CPU)
        worker.backward(loaded, loaded.step_batch.num_predictions(), 0)
        found.append(learner.network.embed.token.weight.grad.clone())
    torch.testing.assert_close(found[0] * 0.25, found[1])


class Stop(Exception):
    """Someone pulls the plug."""


@pytest.mark.parametrize("order", list(TaskOrder))
def test_a_stopped_run_ends_with_the_same_weights(tmp_path, order):
    made = together(tmp_path, task_order=order)

    def stop(line):
        if line["step"] == 13:
            raise Stop

    with pytest.raises(Stop):
        trained(made, tmp_path / "stopped", [stop])
    lines = []
    again, whole = trained(made, tmp_path / "stopped", [lines.append]), trained(made, tmp_path / "whole")
    assert lines[0]["step"] > 0
    for name, tensor in whole.named_weights().items():
        assert torch.equal(tensor, again.named_weights()[name]), name


def test_the_trunk_is_saved_once_and_every_task_comes_back_bit_for_bit(tmp_path):
    made = together(tmp_path)
    learner = trained(made, tmp_path / "run")
    trunk, out = encoder_only(learner), tmp_path / "out"
    out.mkdir()
    save_encoder(trunk, TOKENIZER, out / "encoder", {"source": "little"})
    for task in made.tasks:
        save_head(made.finetuned_task(learner, task), out / task.name, trunk, {"metrics": {}})
    moved = out.rename(tmp_path / "moved")  # the folder may be carried elsewhere
    for task in made.tasks:
        weights = load_file(moved / task.name / "model.safetensors")
        assert {name.split(".")[1] for name in weights} == {task.name}
        back = open_finetuned(moved / task.name)
        assert answers_of(task, back) == answers_of(task, made.finetuned_task(learner, task))
        assert back.task == task.data.task

    model, _ = load_encoder(moved / "encoder")
    for name, tensor in learner.network.state_dict().items():
        assert torch.equal(tensor, model.network.state_dict()[name])
    assert open_model(moved / "encoder").name == "encoder"
    (moved / "encoder/model.safetensors").write_bytes(b"something else")
    with pytest.raises(InputError, match="digest differs"):
        open_finetuned(moved / "mood")
    (moved / "encoder/encoder.json").write_text('{"format": 1}')
    with pytest.raises(InputError, match="does not describe an encoder"):
        open_finetuned(moved / "mood")


def test_each_goes_on_from_the_trunk_and_the_head_that_learned_together(tmp_path):
    made = together(tmp_path)
    learner, task = trained(made, tmp_path / "run"), made.tasks[1]
    alone = made.continue_with(task, made.finetuned_task(learner, task), 1.0)
    start = alone.build_model(alone.encode())
    assert list(start.heads) == ["same"]
    for name, tensor in start.named_weights().items():
        assert torch.equal(tensor, learner.named_weights()[name]), name
    assert not alone.encode().heads_vary
    assert alone.describe()["source"] != made.describe()["source"]
    after = trained(alone, tmp_path / "alone")
    assert any(not torch.equal(tensor, learner.named_weights()[name]) for name, tensor in after.named_weights().items())


def test_from_scratch_only_the_first_part_is_drawn(tmp_path):
    made = together(tmp_path, settings=replace(HOW, start=StartFrom.SCRATCH))
    learner = made.build_model(made.encode())
    assert not torch.equal(learner.network.embed.token.weight, made.model.network.embed.token.weight)
    then = made.continue_with(made.tasks[0], made.finetuned_task(learner, made.tasks[0]), 1.0)
    assert then.settings.start is StartFrom.PRETRAINED


def test_the_description_tells_runs_apart_and_the_optimizer_follows_it(tmp_path):
    made = together(tmp_path)
    assert made.optim_config.optimizer == AdamW(HOW.lr, bias_correction=True)
    assert replace(made, optimizer=OptimizerName.ADAMAX).optim_config.optimizer == Adamax(HOW.lr)
    others = [
        replace(made, optimizer=OptimizerName.ADAMAX),
        replace(made, task_order=TaskOrder.ALTERNATING),
        replace(made, tasks=made.tasks[:2]),
        replace(made, tasks=(replace(made.tasks[0], weight=2.0), *made.tasks[1:])),
    ]
    assert all(other.describe() != made.describe() for other in others)
    assert together(tmp_path).describe() == made.describe()


def test_a_name_that_torch_needs_is_refused(tmp_path):
    made = together(tmp_path)
    with pytest.raises(InputError, match="cannot be called 'values'"):
        replace(made, tasks=(replace(made.tasks[0], name="values"),))
