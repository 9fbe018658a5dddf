"""Law 7, Run-blindness, about steps of our own kernels that are recorded: the same draws, the same numbers.

On a GPU every member is recorded as a CUDA graph, in bfloat16; without one few of them are, and kernels interpreted.
"""

from __future__ import annotations

from dataclasses import replace

import interpreted
import pytest
import torch
from law_nets import (
    as_wide,
    assert_same_gradients,
    dry,
    fast,
    run_of,
    trained_members,
    training,
    uneven,
    worker_for,
)
from torch import Tensor

from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RankSplit
from unmask.train.run_config import Precision
from unmask.train.step import DeviceBatch, StepRunner, set_lr

DEVICE = torch.device(interpreted.DEVICE, 0)
ON_GPU = DEVICE.type == "cuda"
MEMBERS = [one for one in trained_members() if ON_GPU or one.name in ("albert", "electra")]
every_member = pytest.mark.parametrize("recipe", MEMBERS, ids=lambda recipe: recipe.name)
on_gpu = pytest.mark.skipif(not ON_GPU, reason="without a GPU there is no second stream")
STEPS = 4
"""One as it comes, one that is recorded and repeated, two that are repeated."""
NEAR = 0.02
"""bfloat16 keeps three digits."""
RATE = 1e-3


def made_for(recipe: Recipe, **logistics: object) -> tuple[StepRunner, DeviceBatch]:
    """A worker whose rate is 0, and a lesson."""
    made = training(recipe, 1)
    worker = worker_for(made, run_of(device=DEVICE, max_in_flight=1, **logistics))
    set_lr(worker.optimizer, 0.0)
    return worker, DeviceBatch.of(made.source.batch(uneven(made.source), RankSplit()), DEVICE, bucket=True)


def told(recipe: Recipe, **logistics: object) -> Tensor:
    """The norm of the gradient and the losses of some steps over the same lesson."""
    worker, loaded = made_for(recipe, **logistics)
    counts, said = loaded.step_batch.num_predictions(), 1 + len(loaded.step_batch.objectives)
    found = [worker.run(loaded, counts, step).read() for step in range(STEPS)]
    if logistics.get("graphs") and loaded.is_bucketed:
        assert worker.graph_cache is not None
        assert len(worker.graph_cache.recordings) == 1
    return torch.tensor([one[:said] for one in found])


@every_member
def test_a_step_that_is_repeated_has_the_draws_that_it_would_have_had(recipe: Recipe) -> None:
    ways = {"precision": Precision.BFLOAT16, "triton_kernels": True}
    recorded, plainly = (told(recipe, cuda_graphs=graphs, **ways) for graphs in (True, False))
    torch.testing.assert_close(recorded, plainly, rtol=2e-3, atol=2e-3)
    if recipe.network.dropout:
        assert len({tuple(row) for row in recorded.tolist()}) == STEPS, "every step has draws of its own"


def electra() -> Recipe:
    """With a generator of the trunk's size, whose heads our own attention can read, and a rate to learn at."""
    (recipe,) = (one for one in MEMBERS if one.name == "electra")
    stages = tuple(
        replace(
            stage, tasks=tuple(replace(task, objectives=tuple(map(as_wide, task.objectives))) for task in stage.tasks)
        )
        for stage in recipe.stages
    )
    return fast(replace(recipe, stages=stages), RATE)


def worker_of(aside: bool) -> tuple[StepRunner, DeviceBatch]:
    ways = {"precision": Precision.BFLOAT16, "triton_kernels": True, "cuda_graphs": True, "max_in_flight": 1}
    made = training(electra(), 1)
    worker = worker_for(made, run_of(device=DEVICE, generator_stream=aside, **ways))
    assert bool(worker.model.generator_stream.streams) is aside
    return worker, DeviceBatch.of(made.source.batch(uneven(made.source), RankSplit()), DEVICE, bucket=True)


@on_gpu
def test_a_generator_beside_the_trunk_has_the_same_gradients() -> None:
    """Tensor by tensor: those of a generator are small beside the trunk's."""
    found = []
    for aside in (True, False):
        worker, loaded = worker_of(aside)
        worker.backward(loaded, loaded.step_batch.num_predictions(), 0)
        found.append({name: p.grad for name, p in worker.model.named_parameters() if p.grad is not None})
    assert any(name.startswith("heads.guess.encoder.layers") for name in found[0])
    assert_same_gradients(*found, 1e-4)


@on_gpu
def test_a_generator_beside_the_trunk_learns_the_same() -> None:
    """In a step as it comes, and in ones that are repeated; AdamW moves everything by about its rate."""
    found = []
    for aside in (True, False):
        worker, loaded = worker_of(aside)
        set_lr(worker.optimizer, 1.0)
        before = {name: weight.clone() for name, weight in worker.model.named_weights().items()}
        for step in range(STEPS):
            worker.run(loaded, loaded.step_batch.num_predictions(), step).read()
        found.append({name: weight - before[name] for name, weight in worker.model.named_weights().items()})
    for name, moved in found[1].items():
        assert (found[0][name] - moved).abs().mean() < 0.1 * RATE, name
    layers = [moved for name, moved in found[0].items() if name.startswith("heads.guess.encoder.layers")]
    assert all(moved.abs().mean() > 0.5 * RATE for moved in layers)


@every_member
def test_kernels_in_halves_come_near_the_plain_code(recipe: Recipe) -> None:
    recipe = dry(recipe)
    mine = told(recipe, cuda_graphs=True, triton_kernels=True, precision=Precision.BFLOAT16)
    torch.testing.assert_close(mine, told(recipe, cuda_graphs=False, triton_kernels=False), rtol=NEAR, atol=NEAR)


@every_member
def test_kernels_of_attention_are_taken_where_there_is_dropout(recipe: Recipe) -> None:
    """As a whole network takes them: behind a projection under autocast, in batches with sequences of no tokens."""
    if not ON_GPU:
        pytest.skip("a CPU computes dropout one sequence after another")
    from unmask.nets.kernels import attention

    taken = []
    launch = attention._Work.launch
    kept = replace(recipe, network=replace(recipe.network, attention_dropout=0.1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention._Work, "launch", lambda self, *args: (taken.append(1), launch(self, *args)))
        assert told(kept, cuda_graphs=False, triton_kernels=True, precision=Precision.BFLOAT16).isfinite().all()
        assert taken
        taken.clear()
        assert told(kept, cuda_graphs=False, triton_kernels=False, precision=Precision.BFLOAT16).isfinite().all()
        assert not taken, "the switch is off"
