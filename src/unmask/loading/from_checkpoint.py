"""Networks from the weights of a checkpoint: the trained encoder with its heads, and ELECTRA's generator."""

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
"""The prefix of the generator's weights."""


def model_from_state(
    state: Mapping[str, Tensor], network: NetworkConfig, vocab_size: int, max_positions: int
) -> EncoderWithHeads:
    """The trained encoder with its LM head, row head and discriminator head, as far as they exist.

    Heads of other kinds, a second head of the same kind and a generator are left out.
    """
    own = {name: tensor for name, tensor in state.items() if not name.startswith(_GENERATOR_PREFIX)}
    lm, row, discriminator = _head_prefixes(own, vocab_size)
    model = EncoderWithHeads(network, vocab_size, max_positions, bool(lm), bool(row), bool(discriminator))
    prefixes = (("", "network."), (lm, "lm_head."), (row, "row_head."), (discriminator, "discriminator_head."))
    weights = {
        name.removeprefix(prefix): tensor
        for name, tensor in own.items()
        for prefix, part in prefixes
        if name.startswith(prefix + part)
    }
    return _load_weights(model, weights)


def heads_left_out(state: Mapping[str, Tensor], vocab_size: int) -> tuple[str, ...]:
    """The names of the heads that `model_from_state` leaves out, except a generator."""
    own = {name: tensor for name, tensor in state.items() if not name.startswith(_GENERATOR_PREFIX)}
    heads = {".".join(name.split(".")[:2]) + "." for name in own if name.startswith("heads.")}
    return tuple(sorted(head.split(".")[1] for head in heads - {*_head_prefixes(own, vocab_size)}))


def generator_from_state(
    state: Mapping[str, Tensor],
    recipe: Mapping[str, Any],
    network: NetworkConfig,
    vocab_size: int,
    max_positions: int,
) -> EncoderWithHeads | None:
    """The generator of a run, built from the encoded recipe; `None` if the run has none.

    Weights that it shares with the encoder are stored under the encoder's names.
    """
    if not any(name.startswith(_GENERATOR_PREFIX) for name in state):
        return None
    generator = next(_generators(recipe), None)
    if generator is None:
        raise InputError(
            "The checkpoint does not fit run.json: it has the weights of a generator, and the recipe has none. Take "
            "the run.json that was written with it."
        )
    model = EncoderWithHeads(
        generator.config_for(require_transformer(network)), vocab_size, max_positions, has_row_head=False
    )
    return _load_weights(model, {name: _generator_weight(name, state) for name, _ in model.named_parameters()})


def _generators(recipe: Mapping[str, Any]) -> Iterator[Generator]:
    """The generators among the objectives of an encoded recipe. Other objectives are not decoded."""
    objectives = (one for stage in recipe["stages"] for task in stage["tasks"] for one in task["objectives"])
    return (decode(one, Generator) for one in objectives if one[TAG] == tag_of(Generator))


def _generator_weight(name: str, state: Mapping[str, Tensor]) -> Tensor:
    """One weight of the generator: its own, or the one shared with the encoder."""
    own = _GENERATOR_PREFIX + (f"encoder.{name.removeprefix('network.')}" if name.startswith("network.") else name)
    if own not in state and name not in state:
        raise InputError(f"The checkpoint does not fit the generator of run.json: it has no {own}. Take another one.")
    return state[own] if own in state else state[name]


def _load_weights(model: EncoderWithHeads, weights: Mapping[str, Tensor]) -> EncoderWithHeads:
    try:
        load_weights(model, weights)
    except InputError as error:
        raise InputError(f"The checkpoint does not fit the network of run.json. {error}") from error
    return model.eval()


def _head_prefixes(state: Mapping[str, Tensor], vocab_size: int) -> tuple[str, str, str]:
    """The prefixes of the LM head, the row head with two classes, and the discriminator head."""
    return (
        _first_head_prefix(state, ".lm_head.bias", vocab_size),
        _first_head_prefix(state, ".row_head.classify.bias", ROW_CLASSES),
        _first_head_prefix(state, ".discriminator_head.classify.bias", 1),
    )


def _first_head_prefix(state: Mapping[str, Tensor], suffix: str, size: int) -> str:
    """The prefix of the first head with a vector of this size under this suffix; empty if there is none."""
    found = sorted(name for name, tensor in state.items() if name.endswith(suffix) and len(tensor) == size)
    return found[0].removesuffix(suffix) + "." if found else ""
