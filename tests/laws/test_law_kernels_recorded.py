"""Law 7, Run-blindness, about steps of our own kernels that are recorded: the same draws, the same numbers.

On a GPU every member is recorded as a CUDA graph, in bfloat16; without one few of them are, and kernels interpreted.
"""

from __future__ import annotations

from dataclasses import replace

import interpreted
import pytest
import torch
from law_nets import dry, run_of, trained_members, training, uneven, worker_for
from torch import Tensor

from unmask.tasks import Recipe
from unmask.train.course import Crew
from unmask.train.optim import set_rate
from unmask.train.run import Precision
from unmask.train.step import Loaded, Worker

DEVICE = torch.device(interpreted.DEVICE, 0)
ON_GPU = DEVICE.type == "cuda"
MEMBERS = [one for one in trained_members() if ON_GPU or one.name in ("albert", "electra")]
every_member = pytest.mark.parametrize("recipe", MEMBERS, ids=lambda recipe: recipe.name)
STEPS = 4
"""One as it comes, one that is recorded and repeated, two that are repeated."""
NEAR = 0.02
"""bfloat16 keeps three digits."""


def made_for(recipe: Recipe, **logistics: object) -> tuple[Worker, Loaded]:
    """A worker whose rate is 0, and a lesson."""
    made = training(recipe, 1)
    worker = worker_for(made, run_of(device=DEVICE, queue=1, **logistics))
    set_rate(worker.optimizer, 0.0)
    return worker, Loaded.of(made.course.lesson(uneven(made.course), Crew()), DEVICE, evened=True)


def told(recipe: Recipe, **logistics: object) -> Tensor:
    """The norm of the gradient and the losses of some steps over the same lesson."""
    worker, loaded = made_for(recipe, **logistics)
    counts, said = loaded.lesson.asked(), 1 + len(loaded.lesson.objectives)
    found = [worker.take(loaded, counts, step).read() for step in range(STEPS)]
    if logistics.get("graphs") and loaded.evened:
        assert worker.repeats is not None
        assert len(worker.repeats.recordings) == 1
    return torch.tensor([one[:said] for one in found])


@every_member
def test_a_step_that_is_repeated_has_the_draws_that_it_would_have_had(recipe: Recipe) -> None:
    ways = {"precision": Precision.BFLOAT16, "fused": True}
    recorded, plainly = (told(recipe, graphs=graphs, **ways) for graphs in (True, False))
    torch.testing.assert_close(recorded, plainly, rtol=2e-3, atol=2e-3)
    if recipe.trunk.dropout:
        assert len({tuple(row) for row in recorded.tolist()}) == STEPS, "every step has draws of its own"


@pytest.mark.parametrize("recipe", [one for one in MEMBERS if one.name == "electra"], ids=lambda recipe: recipe.name)
def test_a_generator_that_goes_back_beside_the_trunk_learns_the_same(recipe: Recipe) -> None:
    """In a step as it comes, and in one that is repeated. Without a GPU there is no second stream, nothing to see."""
    ways = {"precision": Precision.BFLOAT16, "fused": True, "graphs": True}
    beside, behind = (told(recipe, aside=aside, **ways) for aside in (True, False))
    torch.testing.assert_close(beside, behind, rtol=2e-3, atol=2e-3)


@every_member
def test_kernels_in_halves_come_near_the_plain_code(recipe: Recipe) -> None:
    recipe = dry(recipe)
    mine = told(recipe, graphs=True, fused=True, precision=Precision.BFLOAT16)
    torch.testing.assert_close(mine, told(recipe, graphs=False, fused=False), rtol=NEAR, atol=NEAR)


@every_member
def test_kernels_of_attention_are_taken_where_there_is_dropout(recipe: Recipe) -> None:
    """As a whole network takes them: behind a projection under autocast, in batches with sequences of no tokens."""
    if not ON_GPU:
        pytest.skip("a CPU computes dropout one sequence after another")
    from unmask.nets import kernels_attention

    taken = []
    launch = kernels_attention._Work.launch
    kept = replace(recipe, trunk=replace(recipe.trunk, attention_dropout=0.1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels_attention._Work, "launch", lambda self, *args: (taken.append(1), launch(self, *args)))
        assert told(kept, graphs=False, fused=True, precision=Precision.BFLOAT16).isfinite().all()
        assert taken
        taken.clear()
        assert told(kept, graphs=False, fused=False, precision=Precision.BFLOAT16).isfinite().all()
        assert not taken, "the switch is off"
