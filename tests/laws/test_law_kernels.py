"""Law 7, Run-blindness, about kernels: with those of our own every member learns what it learns without them.

Here they are interpreted on a CPU; where Triton is not installed, there is nothing to hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import interpreted
import pytest
import torch
from law_nets import (
    assert_same_gradients,
    curve,
    dry,
    fast,
    losses,
    run_of,
    trained_members,
    training,
    uneven,
    worker_for,
)
from torch import Tensor

from unmask.config.network import Norm, Positions
from unmask.finetuning.methods.lora import Lora
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import TokenInputs
from unmask.nets.kernels.dispatch import LinearDeferredBias, use_kernels
from unmask.nets.layers.adapter import add_adapters
from unmask.nets.layers.block import FeedForward, ResidualBranch
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RankSplit
from unmask.train.run_config import Precision
from unmask.train.step import DeviceBatch

MEMBERS = [dry(recipe) for recipe in trained_members()]
every_member = pytest.mark.parametrize("recipe", MEMBERS, ids=lambda recipe: recipe.name)
SAME = 2e-5
"""Of the largest number in a gradient."""
NEAR = 0.02
"""bfloat16 keeps three digits."""
pytestmark = pytest.mark.skipif(interpreted.DEVICE != "cpu", reason="on a GPU the kernels have tests of their own")


def gradients(
    recipe: Recipe, fused: bool, precision: Precision = Precision.FLOAT32
) -> tuple[Tensor, Mapping[str, Tensor]]:
    """The sums of a step and its gradients."""
    made = training(recipe, 1)
    worker = worker_for(made, run_of(triton_kernels=fused, precision=precision))
    loaded = DeviceBatch.of(made.source.batch(uneven(made.source), RankSplit()), torch.device("cpu"), bucket=True)
    sums = worker.backward(loaded, loaded.step_batch.num_predictions(), 0)
    return sums, {name: p.grad for name, p in made.model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("recipe", [one for one in MEMBERS if one.name in ("bert", "albert", "electra", "spanbert")])
def test_states_are_halves_between_products(recipe: Recipe) -> None:
    """Under autocast kernels read and write bfloat16; losses and gradients stay near those of float32."""
    (sums, mine), (expected, theirs) = gradients(recipe, True, Precision.BFLOAT16), gradients(recipe, False)
    torch.testing.assert_close(sums[0], expected[0], rtol=NEAR, atol=0)
    assert {gradient.dtype for gradient in mine.values()} == {torch.float32}
    flat, true = (torch.cat([some[name].flatten() for name in theirs]) for some in (mine, theirs))
    assert torch.cosine_similarity(flat, true, dim=0) > 0.99
    learner = training(recipe, 1).model
    use_kernels(learner)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        tokens = torch.arange(4)
        states = learner.network(TokenInputs(tokens, tokens, tokens % 2, PackedSequences.of([0, 4])))
    assert {layer.dtype for layer in states.layers} == {torch.bfloat16}


def check(recipe: Recipe) -> None:
    (sums, mine), (expected, theirs) = gradients(recipe, True), gradients(recipe, False)
    torch.testing.assert_close(sums, expected, rtol=SAME, atol=SAME)
    assert_same_gradients(mine, theirs, SAME)


@every_member
def test_loss_and_gradients_are_those_of_the_plain_code(recipe: Recipe) -> None:
    check(recipe)


def test_what_no_kernel_covers_goes_its_plain_way() -> None:
    """A norm before each branch; positions that are waves."""
    trunk = MEMBERS[0].network
    check(replace(MEMBERS[0], network=replace(trunk, norm=Norm.PRE)))
    check(replace(MEMBERS[0], network=replace(trunk, positions=Positions.SINUSOIDAL)))


@pytest.mark.parametrize("name", ["bert", "electra"])
def test_a_run_with_dropout_is_another_draw_of_the_same_law(name: str, tmp_path: Path) -> None:
    (recipe,) = (fast(one, 1e-3) for one in trained_members() if one.name == name)
    plain = losses(curve(recipe, 3, tmp_path / "plain"))
    mine = losses(curve(recipe, 3, tmp_path / "mine", triton_kernels=True))
    again = losses(curve(recipe, 3, tmp_path / "again", triton_kernels=True))
    recorded = losses(curve(recipe, 3, tmp_path / "recorded", triton_kernels=True, cuda_graphs=True, max_in_flight=1))
    bare = losses(curve(dry(recipe), 3, tmp_path / "bare", triton_kernels=True))
    assert mine == again
    assert mine != pytest.approx(bare, rel=3e-4), "nothing was left out"
    assert mine == pytest.approx(plain, rel=0.05)
    assert recorded == pytest.approx(plain, rel=0.05)


def test_adapters_take_their_branch_back() -> None:
    """A sum with an adapter in it is no longer that of the work alone, whichever came first."""
    for order in ("kernels first", "adapters first"):
        learner = training(MEMBERS[0], 1).model
        if order == "kernels first":
            use_kernels(learner)
        add_adapters(learner.network, 4, seed=1)
        if order == "adapters first":
            use_kernels(learner)
        branches = [part for part in learner.modules() if isinstance(part, ResidualBranch)]
        assert branches
        assert not any(branch.fused for branch in branches)
        assert not any(isinstance(part, LinearDeferredBias) for part in learner.modules())


def test_a_layer_with_something_beside_it_is_not_passed_over() -> None:
    """Updates of low rank wrap every linear layer of a block; kernels would read the weights inside them alone."""
    pytest.importorskip("peft")
    learner = training(MEMBERS[0], 1).model
    use_kernels(learner)
    Lora(rank=2).add_modules(learner, seed=1)
    use_kernels(learner)
    assert not any(part.fused for part in learner.modules() if isinstance(part, ResidualBranch))
    feed = next(part for part in learner.modules() if isinstance(part, FeedForward))
    x_TD = torch.randn(5, learner.network.config.width)
    before = feed(x_TD)
    with torch.no_grad():
        for name, parameter in feed.up.named_parameters():
            if "lora_B" in name:
                parameter.fill_(1.0)
    assert not torch.allclose(feed(x_TD), before)


def test_names_of_parameters_do_not_change() -> None:
    learner = training(MEMBERS[0], 1).model
    names = list(learner.state_dict())
    use_kernels(learner)
    assert list(learner.state_dict()) == names
    assert any(isinstance(part, LinearDeferredBias) for part in learner.modules())
    use_kernels(learner, False)
    assert not any(isinstance(part, LinearDeferredBias) for part in learner.modules())
