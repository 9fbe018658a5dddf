"""Counted operations: for every member, a real step costs what torch counts while it computes it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from law_nets import run_of, text, trained_members, training, two_tasks, worker_for
from torch.utils.flop_counter import FlopCounterMode

from unmask.errors import RecipeError
from unmask.lab.flops import Load, Meter, load_of
from unmask.nets.attention import Attention, Lowering
from unmask.objectives.every import Every
from unmask.objectives.mlm import MLM
from unmask.objectives.replaced import Replaced, Where
from unmask.tasks import Recipe
from unmask.train.course import ALONE, Lesson, Moment
from unmask.train.step import Loaded

SUBJECTS = (*trained_members(), two_tasks())


def after_guess() -> list[Recipe]:
    """The member with a generator, learning everything else that can be learned from its guesses."""
    recipe = next(one for one in SUBJECTS if any(objective.name == "guess" for objective in one.objectives))
    stage = recipe.stages[0]
    (task,) = stage.tasks
    others = (Every(), MLM(), Replaced(where=Where.CHOSEN))
    tasks = (replace(task, learns=(task.learns[0], other)) for other in others)
    return [replace(recipe, stages=(replace(stage, tasks=(one,), share=1.0),)) for one in tasks]


def whole(lesson: Lesson) -> Load:
    (instance,) = lesson.instances
    return load_of(instance, lesson.objectives, lesson.apart)


@pytest.mark.parametrize("recipe", [*SUBJECTS, *after_guess()], ids=lambda recipe: recipe.name)
def test_a_step_costs_what_torch_counts(recipe):
    made = training(recipe, 20)
    for module in made.learner.modules():
        if isinstance(module, Attention):
            module.lowering = Lowering.EACH  # written out as products, which torch counts on every device
    meter = Meter.of(made.course, text().vocab.size)
    worker = worker_for(made, run_of(sparing=False))  # budgets count the network, with its last block at all places
    for step in range(3):
        lesson = made.course.lesson(Moment(step, step / 3), ALONE)
        with FlopCounterMode(display=False) as counter:
            worker.backward(Loaded.of(lesson, worker.run.device), [max(one, 1) for one in lesson.asked()], step)
        assert counter.get_total_flops() == meter.step(whole(lesson))


@pytest.mark.parametrize("recipe", SUBJECTS, ids=lambda recipe: recipe.name)
def test_a_record_tells_nearly_what_its_steps_cost(recipe):
    course = training(recipe, 20).course
    meter = Meter.of(course, text().vocab.size)
    tokens, true, lines = 0, 0.0, []
    for step in range(20):
        lesson = course.lesson(Moment(step, step / 20), ALONE)
        load = whole(lesson)
        tokens, true = tokens + load.tokens, true + meter.step(load)
        line = {"kind": "step", "step": step + 1, "tokens": tokens, "seconds": float(step), "count": load.asked}
        lines.append({**line, "place": lesson.place, "length": lesson.length})
    told = list(meter.spent(lines))
    assert [one.step for one in told] == list(range(1, 21))
    assert told[-1].flops == pytest.approx(true, rel=0.02)
    steps = meter.steps(true)
    assert steps == pytest.approx(20, abs=2)


def test_an_objective_that_does_not_say_what_it_costs_is_refused():
    @dataclass(frozen=True, slots=True)
    class Own:
        """A cloze that learns and is asked as any other, and has no word on its cost."""

        usual: MLM = MLM()
        name, reads, facts, weight = "own", MLM.reads, MLM.facts, 1.0

        def asks(self, sample):
            return self.usual.asks(sample)

        def head(self, trunk, token):
            return self.usual.head(trunk, token)

        def asked(self, instance):
            return self.usual.asked(instance)

    recipe = next(one for one in SUBJECTS if not one.stages[0].tasks[0].examples.gives)
    stage = recipe.stages[0]
    own = replace(recipe, stages=(replace(stage, tasks=(replace(stage.tasks[0], learns=(Own(),)),), share=1.0),))
    with pytest.raises(RecipeError, match=r"Own does not say what it costs.*Give it a method `cost`"):
        Meter.of(training(own, 1).course, text().vocab.size)
