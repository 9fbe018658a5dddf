"""Import: anyone's BERT, RoBERTa, ALBERT, ERNIE or ELECTRA as a network of ours.

What arrives: a Hugging Face folder with `config.json`, safetensors and a tokenizer.
What leaves: a `Model` and its `Tokenizer`.
What never happens here: pickle, code from the folder, or a tensor that is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from unmask.errors import InputError
from unmask.export.dialects import grammar_of, purposes
from unmask.export.grammar import Parts
from unmask.export.naming import canonical, parts_in, table_for
from unmask.export.settings import Sizes, check_trunk, read_config
from unmask.export.table import Weights, some
from unmask.export.tokenizer_files import read_settings, read_tokenizer
from unmask.nets.heads import RowHead
from unmask.nets.model import Model
from unmask.tokenize.tokenizer import Tokenizer


def load(folder: Path) -> tuple[Model, Tokenizer]:
    """Network and tokenizer of a folder, in float32 on the CPU, ready to be used.

    The network has the heads that the weights hold, whatever class the folder is named for. A pooler without its
    classes (`BertModel`) becomes a head for rows whose classes are all zero: they say nothing until they are trained.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} is no Hugging Face folder: it has no config.json. Give the folder of a network.")
    config = read_settings(folder / "config.json")
    sizes = read_config(config)
    grammar = grammar_of(sizes.dialect)
    theirs = canonical(grammar, read_weights(folder))
    parts = parts_in(grammar, theirs, purposes(sizes.dialect, config.get("architectures") or ()))
    check_trunk(grammar, sizes.trunk, parts)
    weights = table_for(grammar, parts, sizes.trunk).to_ours(theirs)
    model = _empty(sizes, parts, weights)
    if model.row is not None and "row.classify" not in parts.layers:
        weights |= {f"row.classify.{name}": torch.zeros_like(p) for name, p in model.row.classify.named_parameters()}
    _check_shapes(model.state_dict(), weights, folder)
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    tokenizer = read_tokenizer(folder)
    check_room(model, tokenizer)
    return model.eval(), tokenizer


def _empty(sizes: Sizes, parts: Parts, weights: Weights) -> Model:
    """A network with the heads that these weights are for."""
    row, replaced = "row.pool" in parts.layers, "replaced.dense" in parts.layers
    model = Model(sizes.trunk, sizes.vocabulary, sizes.positions, parts.tokens, row, replaced)
    if "row.classify" in parts.layers:
        model.row = RowHead(sizes.trunk, len(weights["row.classify.bias"]))
    if "each" in parts.layers:
        model.each = nn.Linear(sizes.trunk.width, len(weights["each.bias"]))
    return model


def read_weights(folder: Path) -> Weights:
    """All tensors of a folder, from one file or from the files that an index names."""
    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if single.is_file():
        return _tensors(single)
    if index.is_file():
        names = sorted({str(name) for name in read_settings(index).get("weight_map", {}).values()})
        if any(Path(name).name != name for name in names):
            raise InputError(f"{index} points outside of its folder; take the folder from its source again.")
        return {name: tensor for file in names for name, tensor in _tensors(folder / file).items()}
    if list(folder.glob("*.bin")):
        raise InputError(
            f"{folder} holds its weights as pickle (.bin), which can run code when it is read and is therefore never "
            "read here. Convert it to model.safetensors first, or take a folder that has it."
        )
    raise InputError(f"{folder} has no model.safetensors; give a folder that holds the weights.")


def check_room(model: Model, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that can say ids for which the network has no row."""
    if tokenizer.vocab.size > model.vocabulary:
        raise InputError(
            f"The tokenizer has {tokenizer.vocab.size} entries, but the network has rows for {model.vocabulary} only. "
            "Use the tokenizer that the network was trained with, or extend the network."
        )


def _tensors(path: Path) -> Weights:
    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}); take the folder from its source again.") from error


def _check_shapes(ours: Mapping[str, Tensor], found: Mapping[str, Tensor], folder: Path) -> None:
    wrong = [
        f"{name} should be {tuple(ours[name].shape)} and is {tuple(tensor.shape)}"
        for name, tensor in found.items()
        if ours[name].shape != tensor.shape
    ]
    if wrong:
        raise InputError(f"The weights in {folder} do not fit its config.json: {some(wrong, 3)}.")
