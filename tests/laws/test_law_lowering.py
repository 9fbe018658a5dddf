"""Law 6, Lowering: on the network of every member, every attention kernel agrees with the dense reference."""

from __future__ import annotations

import pytest
import torch
from law_nets import CPU, LENGTH, dry, text, trained_encoders, training, uneven
from torch import Tensor

from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import TransformerEncoder, init_weights
from unmask.nets.layers.attention import AttentionBackend
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RankSplit
from unmask.train.step import DeviceBatch

NEAR = 1e-5
"""float32: sums in another order, through two layers."""
MEMBERS = [dry(recipe) for recipe in trained_encoders()]
CASES = [recipe for number, recipe in enumerate(MEMBERS) if recipe.network not in [m.network for m in MEMBERS[:number]]]
"""Every member whose network differs from those before it."""
every_network = pytest.mark.parametrize("recipe", CASES, ids=lambda recipe: recipe.name)


def rows_of(recipe: Recipe) -> Batch:
    """Rows of unequal length, as a step sees them."""
    course = training(recipe, 1).source
    return DeviceBatch.of(course.batch(uneven(course), RankSplit()), CPU).batches[0]


def network(recipe: Recipe) -> TransformerEncoder:
    net = TransformerEncoder(recipe.network, text().vocab.size, 2 * LENGTH)
    init_weights(net, 0.1, torch.Generator().manual_seed(0))
    return net


def states_of(net: TransformerEncoder, rows: Batch, lowering: AttentionBackend) -> Tensor:
    for block in net.blocks():
        block.attention.sublayer.backend = lowering
    last: Tensor = net(rows.tokens).last_TD
    return last


def gradients_of(net: TransformerEncoder, rows: Batch, lowering: AttentionBackend) -> list[Tensor]:
    """The gradients of the states' part in one direction."""
    states = states_of(net, rows, lowering)
    direction = torch.randn(states.shape, generator=torch.Generator().manual_seed(1))
    return list(torch.autograd.grad((states * direction).sum(), list(net.parameters())))


@every_network
@pytest.mark.parametrize("lowering", [AttentionBackend.SDPA, AttentionBackend.FLEX, AttentionBackend.AUTO])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_every_kernel_equals_the_dense_reference(recipe: Recipe, lowering: AttentionBackend) -> None:
    net, rows = network(recipe), rows_of(recipe)
    with torch.no_grad():
        assert torch.allclose(
            states_of(net, rows, lowering), states_of(net, rows, AttentionBackend.REFERENCE), atol=NEAR, rtol=NEAR
        )


@every_network
@pytest.mark.parametrize(
    "lowering", [AttentionBackend.SDPA, AttentionBackend.AUTO]
)  # flex attention has no gradient on a CPU
def test_every_kernel_has_the_gradient_of_the_dense_reference(recipe: Recipe, lowering: AttentionBackend) -> None:
    net, rows = network(recipe), rows_of(recipe)
    found, dense = gradients_of(net, rows, lowering), gradients_of(net, rows, AttentionBackend.REFERENCE)
    for one, other in zip(found, dense, strict=True):
        assert (one - other).abs().max() <= NEAR * other.abs().max()
