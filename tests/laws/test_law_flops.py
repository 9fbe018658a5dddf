"""Counted operations: for every member, a real step costs what torch counts while it computes it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from law_nets import run_of, text, trained_members, training, two_tasks, worker_for
from torch.utils.flop_counter import FlopCounterMode

from unmask.config.network import TransformerConfig
from unmask.core.errors import RecipeError
from unmask.nets.layers.attention import AttentionBackend, SelfAttention
from unmask.objectives.all_tokens_mlm import AllTokensMLM
from unmask.objectives.mlm import MLM
from unmask.objectives.protocol import Objective
from unmask.objectives.rtd import RTD, JudgedTokens
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import SINGLE_PROCESS, RunPosition, StepBatch
from unmask.train.flops_meter import FlopsMeter, Workload, workload_of
from unmask.train.step import DeviceBatch

SUBJECTS = (*trained_members(), two_tasks())


def after_guess() -> list[Recipe]:
    """The member with a generator, learning everything else that can be learned from its guesses."""
    recipe = next(one for one in SUBJECTS if any(objective.name == "guess" for objective in one.objectives))
    stage = recipe.stages[0]
    (task,) = stage.tasks
    others = (AllTokensMLM(), MLM(), RTD(judged_tokens=JudgedTokens.CHOSEN))
    tasks = (replace(task, objectives=(task.objectives[0], other)) for other in others)
    return [replace(recipe, stages=(replace(stage, tasks=(one,), fraction=1.0),)) for one in tasks]


def whole(lesson: StepBatch) -> Workload:
    (instance,) = lesson.instances
    return workload_of(instance, lesson.objectives, lesson.attention.isolate_documents)


@pytest.mark.parametrize("recipe", [*SUBJECTS, *after_guess()], ids=lambda recipe: recipe.name)
def test_a_step_costs_what_torch_counts(recipe):
    made = training(recipe, 20)
    for module in made.model.modules():
        if isinstance(module, SelfAttention):
            module.backend = AttentionBackend.LOOP  # written out as products, which torch counts on every device
    meter = FlopsMeter.of(made.source, text().vocab.size)
    worker = worker_for(
        made, run_of(sparse_last_block=False)
    )  # budgets count the network, with its last block at all places
    for step in range(3):
        lesson = made.source.batch(RunPosition(step, step / 3), SINGLE_PROCESS)
        with FlopCounterMode(display=False) as counter:
            worker.backward(
                DeviceBatch.of(lesson, worker.config.device), [max(one, 1) for one in lesson.num_predictions()], step
            )
        if isinstance(recipe.network, TransformerConfig) and recipe.network.memory_length:
            assert 0.5 < meter.step(whole(lesson)) / counter.get_total_flops() < 1  # a budget counts no memory
        elif isinstance(recipe.network, TransformerConfig):
            assert counter.get_total_flops() == meter.step(whole(lesson))
        else:  # computed on the padded grid, whose padding no budget counts
            assert 0.7 < meter.step(whole(lesson)) / counter.get_total_flops() <= 1


@pytest.mark.parametrize("recipe", SUBJECTS, ids=lambda recipe: recipe.name)
def test_a_record_tells_nearly_what_its_steps_cost(recipe):
    course = training(recipe, 20).source
    meter = FlopsMeter.of(course, text().vocab.size)
    tokens, true, lines = 0, 0.0, []
    for step in range(20):
        lesson = course.batch(RunPosition(step, step / 20), SINGLE_PROCESS)
        load = whole(lesson)
        tokens, true = tokens + load.tokens, true + meter.step(load)
        line = {"kind": "step", "step": step + 1, "tokens": tokens, "seconds": float(step), "count": load.predictions}
        lines.append({**line, "task": lesson.task_name, "length": lesson.max_length})
    told = list(meter.spent(lines))
    assert [one.step for one in told] == list(range(1, 21))
    assert told[-1].flops == pytest.approx(true, rel=0.02)
    steps = meter.steps(true)
    assert steps == pytest.approx(20, abs=2)


def test_an_objective_that_does_not_say_what_it_costs_is_refused():
    @dataclass(frozen=True, slots=True)
    class Own(Objective):
        """A cloze that learns and is asked as any other, and has no word on its cost."""

        usual: MLM = MLM()
        name, target_type, facts, weight = "own", MLM.target_type, MLM.facts, 1.0

        def prediction_sites(self, sample):
            return self.usual.prediction_sites(sample)

        def build_head(self, backbone):
            return self.usual.build_head(backbone)

        def num_predictions(self, instance):
            return self.usual.num_predictions(instance)

    recipe = next(one for one in SUBJECTS if one.name == "roberta")
    stage = recipe.stages[0]
    own = replace(recipe, stages=(replace(stage, tasks=(replace(stage.tasks[0], objectives=(Own(),)),), fraction=1.0),))
    with pytest.raises(RecipeError, match=r"Own does not define its cost.*Give it a method `cost`"):
        FlopsMeter.of(training(own, 1).source, text().vocab.size)
