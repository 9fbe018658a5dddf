"""Several tasks on one trunk: all are learned, heads rest in turn, a stop changes nothing, everything comes back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from little_many import write_tasks
from little_task import little_model, little_tokenizer
from safetensors.torch import load_file

from unmask.errors import InputError
from unmask.export.source import open_source
from unmask.export.tuned import open_tuned
from unmask.optimising import Adamax, AdamW
from unmask.train.course import ALONE as ALONE_CREW
from unmask.train.course import Moment
from unmask.train.processes import Processes
from unmask.train.run import Run
from unmask.train.step import Loaded
from unmask.train.worker import make_worker
from unmask.tune.many_course import Order
from unmask.tune.many_file import read_tasks
from unmask.tune.many_saved import load_trunk, save_head, save_trunk
from unmask.tune.many_tuning import Mover, Together, trunk_of
from unmask.tune.start import Origin
from unmask.tune.tuning import Settings

CPU = torch.device("cpu")
RUN, ALONE = Run(device=CPU, keep=1, trials=2), Processes(0, 1, CPU)
HOW = Settings(rate=3e-3, epochs=2, batch=8, length=24)
TOKENIZER = little_tokenizer()


@pytest.fixture(autouse=True)
def one_thread():
    """A network this small is slower on two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def together(tmp_path, **changes) -> Together:
    made = Together(read_tasks(write_tasks(tmp_path)), little_model(), TOKENIZER, HOW, "little")
    return replace(made, **changes)


def trained(made: Together, folder, listeners=()):
    folder.mkdir(exist_ok=True)
    return made.train(made.lay_out(), RUN, ALONE, folder, listeners)


def answers_of(task, tuned):
    return [answer.line() for answer in tuned.answer(task.job.judged)]


@pytest.mark.parametrize(("mover", "rate"), [(Mover.ADAMW, 5e-3), (Mover.ADAMAX, 2e-2)])
def test_all_tasks_are_learned(tmp_path, mover, rate):
    lines = []
    made = together(tmp_path, settings=replace(HOW, epochs=20, rate=rate), mover=mover)
    learner = trained(made, tmp_path / "run", [lines.append])
    first, *_, last = [line for line in lines if line["kind"] == "trial"]
    assert list(last["loss"]) == list(last["count"]) == ["mood", "same", "like"]
    assert all(last["loss"][name] < 0.5 * first["loss"][name] for name in last["loss"])
    assert last["right"]["mood"] > 0.9
    assert {line["place"] for line in lines if line["kind"] == "step"} == {"mood", "same", "like"}
    tuned = made.tuned(learner, made.tasks[0])
    said = [answer.said for answer in tuned.answer(made.tasks[0].job.judged)]
    truths = [question.truth for question in made.tasks[0].job.judged.questions]
    assert np.mean([a == b for a, b in zip(said, truths, strict=True)]) == pytest.approx(
        last["right"]["mood"], abs=1e-4
    )


def test_a_step_moves_the_trunk_and_one_head(tmp_path):
    made = together(tmp_path)
    course = made.lay_out()
    learner = made._learner(course)
    worker = make_worker(learner, made.descent, course.mixed, 0, RUN, ALONE)
    before = {name: tensor.clone() for name, tensor in learner.weights().items()}
    loaded = Loaded.of(course.lesson(Moment(0, 0.5), ALONE_CREW), CPU)
    worker.move(worker.backward(loaded, loaded.lesson.asked(), 0))
    moved = {name.split(".")[1] for name, tensor in learner.weights().items() if not torch.equal(tensor, before[name])}
    heads = {name for name in moved if name in ("mood", "same", "like")}
    assert heads == {loaded.lesson.place}
    assert "layers" in moved


def test_a_weight_scales_the_gradient(tmp_path):
    found = []
    for weight in (1.0, 0.25):
        made = together(tmp_path)
        made = replace(made, tasks=tuple(replace(task, weight=weight) for task in made.tasks))
        course = made.lay_out()
        learner = made._learner(course)
        worker = make_worker(learner, made.descent, True, 0, RUN, ALONE)
        loaded = Loaded.of(course.lesson(Moment(0, 0.5), ALONE_CREW), CPU)
        worker.backward(loaded, loaded.lesson.asked(), 0)
        found.append(learner.trunk.embed.token.weight.grad.clone())
    torch.testing.assert_close(found[0] * 0.25, found[1])


class Stop(Exception):
    """Someone pulls the plug."""


@pytest.mark.parametrize("order", list(Order))
def test_a_stopped_run_ends_with_the_same_weights(tmp_path, order):
    made = together(tmp_path, order=order)

    def stop(line):
        if line["step"] == 13:
            raise Stop

    with pytest.raises(Stop):
        trained(made, tmp_path / "stopped", [stop])
    lines = []
    again, whole = trained(made, tmp_path / "stopped", [lines.append]), trained(made, tmp_path / "whole")
    assert lines[0]["step"] > 0
    for name, tensor in whole.weights().items():
        assert torch.equal(tensor, again.weights()[name]), name


def test_the_trunk_is_saved_once_and_every_task_comes_back_bit_for_bit(tmp_path):
    made = together(tmp_path)
    learner = trained(made, tmp_path / "run")
    trunk, out = trunk_of(learner), tmp_path / "out"
    out.mkdir()
    save_trunk(trunk, TOKENIZER, out / "trunk", {"source": "little"})
    for task in made.tasks:
        save_head(made.tuned(learner, task), out / task.name, trunk, {"metrics": {}})
    moved = out.rename(tmp_path / "moved")  # the folder may be carried elsewhere
    for task in made.tasks:
        weights = load_file(moved / task.name / "model.safetensors")
        assert {name.split(".")[1] for name in weights} == {task.name}
        back = open_tuned(moved / task.name)
        assert answers_of(task, back) == answers_of(task, made.tuned(learner, task))
        assert back.output == task.job.output

    model, _ = load_trunk(moved / "trunk")
    for name, tensor in learner.trunk.state_dict().items():
        assert torch.equal(tensor, model.trunk.state_dict()[name])
    assert open_source(moved / "trunk").name == "trunk"
    (moved / "trunk/model.safetensors").write_bytes(b"something else")
    with pytest.raises(InputError, match="digest differs"):
        open_tuned(moved / "mood")
    (moved / "trunk/trunk.json").write_text("{}")
    with pytest.raises(InputError, match="does not describe a trunk"):
        open_tuned(moved / "mood")


def test_each_goes_on_from_the_trunk_and_the_head_that_learned_together(tmp_path):
    made = together(tmp_path)
    learner, task = trained(made, tmp_path / "run"), made.tasks[1]
    alone = made.then(task, made.tuned(learner, task), 1.0)
    start = alone._learner(alone.lay_out())
    assert list(start.heads) == ["same"]
    for name, tensor in start.weights().items():
        assert torch.equal(tensor, learner.weights()[name]), name
    assert not alone.lay_out().mixed
    assert alone.describe()["source"] != made.describe()["source"]
    after = trained(alone, tmp_path / "alone")
    assert any(not torch.equal(tensor, learner.weights()[name]) for name, tensor in after.weights().items())


def test_from_scratch_only_the_first_part_is_drawn(tmp_path):
    made = together(tmp_path, settings=replace(HOW, start=Origin.SCRATCH))
    learner = made._learner(made.lay_out())
    assert not torch.equal(learner.trunk.embed.token.weight, made.model.trunk.embed.token.weight)
    then = made.then(made.tasks[0], made.tuned(learner, made.tasks[0]), 1.0)
    assert then.settings.start is Origin.PRETRAINED


def test_the_description_tells_runs_apart_and_the_optimiser_follows_it(tmp_path):
    made = together(tmp_path)
    assert made.descent.optimiser == AdamW(HOW.rate, correct_bias=True)
    assert replace(made, mover=Mover.ADAMAX).descent.optimiser == Adamax(HOW.rate)
    others = [
        replace(made, mover=Mover.ADAMAX),
        replace(made, order=Order.ALTERNATING),
        replace(made, tasks=made.tasks[:2]),
        replace(made, tasks=(replace(made.tasks[0], weight=2.0), *made.tasks[1:])),
    ]
    assert all(other.describe() != made.describe() for other in others)
    assert together(tmp_path).describe() == made.describe()


def test_a_name_that_torch_needs_is_refused(tmp_path):
    made = together(tmp_path)
    with pytest.raises(InputError, match="cannot be called 'values'"):
        replace(made, tasks=(replace(made.tasks[0], name="values"),))
