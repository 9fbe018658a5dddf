"""Weights as points of one space: differences, lengths, directions, and planes through them.

What arrives: the parameters of networks of one shape, by name. What leaves: points of a line or of a plane, and the
places of other points in it.
What never happens here: a parameter that is left out. Heads, biases and norms are weights like the others; only the
random directions of Li et al. do not move along vectors, and say so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from unmask.core.rng import Key

Weights: TypeAlias = Mapping[str, Tensor]
"""Every parameter of a network, by name."""


def difference(end: Weights, start: Weights) -> dict[str, Tensor]:
    """The way from one point to another."""
    return {name: end[name] - start[name] for name in start}


def dot(one: Weights, other: Weights) -> float:
    """The inner product over all parameters, summed in double precision."""
    return math.fsum(float((one[name].double() * other[name].double()).sum()) for name in one)


def l2_norm(weights: Weights) -> float:
    """The length of a vector of all parameters."""
    return math.sqrt(dot(weights, weights))


def scaled(weights: Weights, factor: float) -> dict[str, Tensor]:
    """A longer or shorter vector of the same direction."""
    return {name: tensor * factor for name, tensor in weights.items()}


def filter_normalized_direction(weights: Weights, key: Key) -> dict[str, Tensor]:
    """A random direction whose every row is as long as that row of the weights; vectors (biases, norms) do not move.

    Networks whose weights have another scale but say the same are thus disturbed alike (Li et al., 2018).
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
    """A plane of weights: (0, 0) is the origin and (1, 0) the end, both to the last bit."""

    origin: Weights
    end: Weights
    second: Weights
    """What one unit of the second axis adds."""

    def at(self, alpha: float, beta: float = 0.0) -> dict[str, Tensor]:
        """The weights of a place. `lerp` gives back both of its ends exactly; a sum with a difference does not."""
        found = {name: torch.lerp(start, self.end[name], alpha) for name, start in self.origin.items()}
        if beta:
            for name, tensor in found.items():
                tensor.add_(self.second[name], alpha=beta)
        return found

    def to(self, device: torch.device) -> Plane:
        """The same plane where networks are computed."""
        return Plane(*({n: t.to(device) for n, t in part.items()} for part in (self.origin, self.end, self.second)))


@dataclass(frozen=True, slots=True, eq=False)
class PlaneAxes:
    """The axes of a plane, to find the places of points by least squares."""

    first: Weights
    second: Weights

    @property
    def cosine(self) -> float:
        """Of the angle between the axes."""
        lengths = l2_norm(self.first) * l2_norm(self.second)
        return dot(self.first, self.second) / lengths if lengths else 0.0

    def project(self, vector: Weights) -> tuple[float, float, float]:
        """The place in the plane that is nearest to a point, and how far off the point is, by its distance.

        `way` leads from the origin to the point. Axes that are parallel share its place between them.
        """
        axes = (self.first, self.second)
        products = np.array([[dot(one, other) for other in axes] for one in axes])
        aims = np.array([dot(one, vector) for one in axes])
        (alpha, beta), *_ = np.linalg.lstsq(products, aims, rcond=1e-10)
        length = dot(vector, vector)
        missed = max(length - float(np.array([alpha, beta]) @ aims), 0.0)
        return float(alpha), float(beta), math.sqrt(missed / length) if length else 0.0
