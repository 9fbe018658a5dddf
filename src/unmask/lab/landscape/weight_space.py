"""Weights as vectors: differences, norms, random directions, planes, and distances by layer.

All parameters are included; only random directions leave biases and norms unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from unmask.core.rng import Key
from unmask.finetuning.parameter_roles import locate_parameters, top_level
from unmask.reports.landscape_results import LayerDistance
from unmask.train.multi_head_model import MultiHeadModel

Weights: TypeAlias = Mapping[str, Tensor]
"""Every parameter of a network, by name."""
_PART_NAMES = {1: (), 2: ("bottom", "top")}
"""The names of the parts of one or two blocks; more blocks have three parts."""
_THIRDS = ("bottom", "middle", "top")


def difference(end: Weights, start: Weights) -> dict[str, Tensor]:
    """The vector from `start` to `end`."""
    return {name: end[name] - start[name] for name in start}


def dot(one: Weights, other: Weights) -> float:
    """The inner product over all parameters, summed in double precision."""
    return math.fsum(float((one[name].double() * other[name].double()).sum()) for name in one)


def l2_norm(weights: Weights) -> float:
    """The Euclidean norm over all parameters."""
    return math.sqrt(dot(weights, weights))


def scaled(weights: Weights, factor: float) -> dict[str, Tensor]:
    """The vector times a factor."""
    return {name: tensor * factor for name, tensor in weights.items()}


def filter_normalized_direction(weights: Weights, key: Key) -> dict[str, Tensor]:
    """A random direction with the norms of the weights, row by row (Li et al., 2018); zero for biases and norms.

    The normalization makes networks with rescaled weights comparable.
    """
    found = {}
    for name in sorted(weights):
        tensor = weights[name]
        if tensor.dim() < 2:
            found[name] = torch.zeros_like(tensor)
            continue
        drawn = torch.randn(tensor.shape, generator=_generator(key.fold_in(name)))
        long, wanted = drawn.flatten(1).norm(dim=1), tensor.flatten(1).norm(dim=1)
        found[name] = drawn * (wanted / long).view(-1, *[1] * (tensor.dim() - 1))
    return found


def _generator(key: Key) -> torch.Generator:
    return torch.Generator().manual_seed(int(key.state) & 0x7FFFFFFFFFFFFFFF)


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """A plane of weights: (0, 0) is exactly the origin and (1, 0) exactly the end."""

    origin: Weights
    end: Weights
    second: Weights
    """The vector of one unit along the second axis."""

    def at(self, alpha: float, beta: float = 0.0) -> dict[str, Tensor]:
        """The weights of a point. `lerp` reproduces both of its ends exactly; adding a difference does not."""
        found = {name: torch.lerp(start, self.end[name], alpha) for name, start in self.origin.items()}
        if beta:
            for name, tensor in found.items():
                tensor.add_(self.second[name], alpha=beta)
        return found

    def to(self, device: torch.device) -> Plane:
        """The same plane on a device."""
        return Plane(*({n: t.to(device) for n, t in part.items()} for part in (self.origin, self.end, self.second)))


@dataclass(frozen=True, slots=True, eq=False)
class PlaneAxes:
    """The axes of a plane, for projections by least squares."""

    first: Weights
    second: Weights

    @property
    def cosine(self) -> float:
        """The cosine of the angle between the axes."""
        lengths = l2_norm(self.first) * l2_norm(self.second)
        return dot(self.first, self.second) / lengths if lengths else 0.0

    def project(self, vector: Weights) -> tuple[float, float, float]:
        """The coordinates of the nearest point in the plane, and the relative distance to it.

        `vector` goes from the origin to the projected point.
        """
        axes = (self.first, self.second)
        products = np.array([[dot(one, other) for other in axes] for one in axes])
        projections = np.array([dot(one, vector) for one in axes])
        (alpha, beta), *_ = np.linalg.lstsq(products, projections, rcond=1e-10)
        length = dot(vector, vector)
        residual = max(length - float(np.array([alpha, beta]) @ projections), 0.0)
        return float(alpha), float(beta), math.sqrt(residual / length) if length else 0.0


def layer_distances(model: MultiHeadModel, start: Weights, end: Weights) -> tuple[LayerDistance, ...]:
    """The distances that the embeddings, each block and the head moved."""
    update, levels, top = difference(end, start), _levels(model), top_level(model)
    found = []
    for level in range(top + 1):
        names = [name for name in update if levels[name] == level]
        if names:
            moved, size = (l2_norm({name: one[name] for name in names}) for one in (update, start))
            found.append(LayerDistance(_name(level, top), moved, size))
    return tuple(found)


def thirds(model: MultiHeadModel) -> Iterator[tuple[str, frozenset[str]]]:
    """The parameters of the lowest, middle and highest third of the blocks, then of all blocks.

    Two blocks are two halves. A part without parameters (shared blocks) is skipped.
    """
    levels, top = _levels(model), top_level(model)
    words = _PART_NAMES.get(top - 1, _THIRDS)
    for word, some in zip(words, np.array_split(np.arange(1, top), len(words)) if words else (), strict=True):
        names = _names_at(levels, some.tolist())
        if names:
            yield f"{word}: {_blocks(some.tolist())}", names
    yield "all blocks", _names_at(levels, range(1, top))


def roll_back(start: Weights, end: Weights, names: Collection[str]) -> dict[str, Tensor]:
    """The weights at the end, with some parameters reset to the start."""
    return {name: start[name] if name in names else tensor for name, tensor in end.items()}


def _levels(model: MultiHeadModel) -> dict[str, int]:
    return {name: place.level for name, place in locate_parameters(model).items()}


def _names_at(levels: dict[str, int], wanted: Collection[int]) -> frozenset[str]:
    return frozenset(name for name, level in levels.items() if level in wanted)


def _name(level: int, top: int) -> str:
    return "embeddings" if level == 0 else "head" if level == top else f"block {level}"


def _blocks(some: list[int]) -> str:
    return f"block {some[0]}" if len(some) == 1 else f"blocks {some[0]} to {some[-1]}"
