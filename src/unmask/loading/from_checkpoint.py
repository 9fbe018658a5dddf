"""The networks in a learner's weights: the one that was trained, and the generator that may stand ahead of it.

What arrives: the weights of a checkpoint, and the shape that they were trained in. What leaves: a `Model`.
What never happens here: reading a file; see `open_model.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from unmask.config.network import NetworkConfig
from unmask.core.codec import TAG, decode, tag_of
from unmask.core.errors import InputError
from unmask.nets.model import ROW_CLASSES, EncoderWithHeads
from unmask.objectives.generator import Generator, require_transformer
from unmask.train.multi_head_model import load_weights

_GENERATOR_PREFIX = f"heads.{Generator.name}."
"""What the names of a generator begin with."""


def model_from_state(
    state: Mapping[str, Tensor], trunk: NetworkConfig, vocabulary: int, positions: int
) -> EncoderWithHeads:
    """The network that was trained: its trunk, and the heads that say tokens, two classes of rows, or replaced tokens.

    Heads of another kind stay behind; so does a second head of the same kind, and a generator.
    """
    own = {name: tensor for name, tensor in state.items() if not name.startswith(_GENERATOR_PREFIX)}
    tokens, row, replaced = _head_prefixes(own, vocabulary)
    model = EncoderWithHeads(trunk, vocabulary, positions, bool(tokens), bool(row), bool(replaced))
    begins = (("", "network."), (tokens, "lm_head."), (row, "row_head."), (replaced, "discriminator_head."))
    weights = {
        name.removeprefix(prefix): tensor
        for name, tensor in own.items()
        for prefix, part in begins
        if name.startswith(prefix + part)
    }
    return _load_weights(model, weights)


def heads_left_out(state: Mapping[str, Tensor], vocabulary: int) -> tuple[str, ...]:
    """The names of the heads that `model_of` does not take along; a generator is no such head."""
    own = {name: tensor for name, tensor in state.items() if not name.startswith(_GENERATOR_PREFIX)}
    heads = {".".join(name.split(".")[:2]) + "." for name in own if name.startswith("heads.")}
    return tuple(sorted(head.split(".")[1] for head in heads - {*_head_prefixes(own, vocabulary)}))


def generator_from_state(
    state: Mapping[str, Tensor], recipe: Mapping[str, Any], trunk: NetworkConfig, vocabulary: int, positions: int
) -> EncoderWithHeads | None:
    """The generator of a run, as the recipe in its description shapes it; nothing where it has none.

    What it shares with the trunk is saved as the trunk's.
    """
    said = next(_generators(recipe), None)
    if said is None or not any(name.startswith(_GENERATOR_PREFIX) for name in state):
        return None
    model = EncoderWithHeads(decode(said, Generator).config_for(require_transformer(trunk)), vocabulary, positions, has_row_head=False)
    return _load_weights(model, {name: _generator_weight(name, state) for name, _ in model.named_parameters()})


def _generators(recipe: Mapping[str, Any]) -> Iterator[Any]:
    """Every generator that a recipe describes."""
    learned = (one for stage in recipe["stages"] for task in stage["tasks"] for one in task["objectives"])
    return (one for one in learned if one[TAG] == tag_of(Generator))


def _generator_weight(name: str, state: Mapping[str, Tensor]) -> Tensor:
    """One weight of the generator."""
    own = _GENERATOR_PREFIX + (f"network.{name.removeprefix('trunk.')}" if name.startswith("network.") else name)
    if own not in state and name not in state:
        raise InputError(f"The checkpoint does not fit what run.json says of the generator: {own} is not there.")
    return state[own] if own in state else state[name]


def _load_weights(model: EncoderWithHeads, weights: Mapping[str, Tensor]) -> EncoderWithHeads:
    try:
        load_weights(model, weights)
    except InputError as error:
        raise InputError(f"The checkpoint does not fit what run.json says of the network. {error}") from error
    return model.eval()


def _head_prefixes(own: Mapping[str, Tensor], vocabulary: int) -> tuple[str, str, str]:
    """What the names of the heads begin with that say tokens, two classes of rows, and replaced tokens."""
    return (
        _first_head_prefix(own, ".lm_head.bias", vocabulary),
        _first_head_prefix(own, ".row_head.classify.bias", ROW_CLASSES),
        _first_head_prefix(own, ".discriminator_head.classify.bias", 1),
    )


def _first_head_prefix(state: Mapping[str, Tensor], end: str, size: int) -> str:
    """What the names of the first head begin with that has a vector of this size under this end; nothing if none."""
    found = sorted(name for name, tensor in state.items() if name.endswith(end) and len(tensor) == size)
    return found[0].removesuffix(end) + "." if found else ""
