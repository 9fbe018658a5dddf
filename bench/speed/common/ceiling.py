"""The most that one H200 could learn from in a second, by arithmetic: what `pretrain_gpu.py --members` is held against.

What arrives: a recipe, and how much there is to compute in a step. What leaves: seconds.
What never happens here: a measurement. The rates below are those that products, copies and published kernels of
attention reach on the device; a ceiling is the time of everything that a step cannot do without, one after another:

- linear layers, each at the rate of large products or as fast as its numbers can be read and written;
- attention at the rate of kernels for heads of 64, which short rows do not reach;
- what stands between: 81 bytes for each token, layer and unit of width, if nothing is read or written twice;
- heads, and 12 bytes for each logit.

Loading, the move of the weights and launches are left out. The last block counts at all places, as in the published
ceilings; ours spares 6 % of the products of a network of twelve blocks there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unmask.config.network import Activation, TransformerConfig
from unmask.nets.accounting.flops import BACKWARD, STEP, encoder_cost, matmul_flops
from unmask.objectives.generator import all_networks
from unmask.objectives.protocol import Objective
from unmask.tasks.recipe import Recipe
from unmask.train.flops_meter import Workload

PRODUCTS = 790e12
BYTES = 4.3e12
LENGTHS, AHEAD, BACK = (128, 512), (180e12, 330e12), (130e12, 250e12)
"""Rates of attention, by how many tokens a token looks at."""
BETWEEN, LOGIT = 81, 12
HALF = 2
"""Bytes of a number."""


def least_seconds(recipe: Recipe, vocabulary: int, load: Workload) -> float:
    """What a step with so much to compute takes at least."""
    networks = all_networks(recipe.network, recipe.objectives)
    heads = (_head(one, recipe.network, vocabulary) * load.predictions.get(one.name, 0) for one in recipe.objectives)
    return sum(_network(trunk, load) for trunk in networks) + sum(heads)


def _network(trunk: TransformerConfig, load: Workload) -> float:
    seen = load.token_pairs / load.tokens
    ahead, back = (float(np.interp(seen, LENGTHS, rates)) for rates in (AHEAD, BACK))
    attention = encoder_cost(trunk).per_pair * load.token_pairs * (1 / ahead + BACKWARD / back)
    between = BETWEEN * trunk.width * trunk.depth / BYTES
    return attention + load.tokens * (between + sum(_linear(*sizes) for sizes in _linears(trunk)))


def _linears(trunk: TransformerConfig) -> Iterator[tuple[int, int]]:
    """The sizes of all linear layers."""
    gates = 2 if trunk.activation is Activation.GEGLU else 1
    for _ in range(trunk.depth):
        yield from ((trunk.width, 3 * trunk.width), (trunk.width, trunk.width))
        yield from ((trunk.width, gates * trunk.ffn_width), (trunk.ffn_width, trunk.width))
    if trunk.token_width != trunk.width:
        yield trunk.token_width, trunk.width


def _linear(inputs: int, outputs: int) -> float:
    """Seconds for one row, both ways: computed, or read and written, whichever takes longer."""
    return STEP * max(matmul_flops(inputs, outputs) / PRODUCTS, HALF * (inputs + outputs) / BYTES)


def _head(objective: Objective, trunk: TransformerConfig, vocabulary: int) -> float:
    """Seconds for one answer, both ways."""
    answer, more = (objective.cost(trunk, size).per_prediction for size in (vocabulary, vocabulary + 1))
    says_tokens = more > answer
    return STEP * answer / PRODUCTS + (LOGIT * vocabulary / BYTES if says_tokens else 0.0)
