"""Load a Hugging Face folder (BERT, RoBERTa, ALBERT, ERNIE 1.0 or ELECTRA): config, safetensors, tokenizer.

No pickle is read and no code of the folder is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.interop.hf.config_json import ModelSizes, check_network, read_config
from unmask.interop.hf.lookup import model_map, normalized_names, parts_present, table_for, tasks_of
from unmask.interop.hf.model_map import Parts
from unmask.interop.hf.tokenizer_files import read_settings, read_tokenizer
from unmask.interop.hf.weight_table import Weights, first_few
from unmask.nets.layers.heads import PoolerClassifier
from unmask.nets.model import EncoderWithHeads, check_vocab_fits


def load_hf_model(folder: Path) -> tuple[EncoderWithHeads, Tokenizer]:
    """The network and the tokenizer of a folder: in float32 on the CPU, in eval mode.

    The heads are those of the weights, whatever class `config.json` names. A pooler without classes (`BertModel`)
    becomes a row head whose classes are zero.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} is no Hugging Face folder: it has no config.json. Give the folder of a network.")
    config = read_settings(folder / "config.json")
    sizes = read_config(config)
    names = model_map(sizes.model_type)
    theirs = normalized_names(names, read_weights(folder))
    parts = parts_present(names, theirs, tasks_of(sizes.model_type, config.get("architectures") or ()))
    check_network(names, sizes.network, parts)
    weights = table_for(names, parts, sizes.network).from_hf(theirs)
    model = _build_empty(sizes, parts, weights)
    if model.row_head is not None and "row_head.classify" not in parts.layers:
        weights |= {
            f"row_head.classify.{name}": torch.zeros_like(p) for name, p in model.row_head.classify.named_parameters()
        }
    _check_shapes(model.state_dict(), weights, folder)
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    tokenizer = read_tokenizer(folder)
    check_vocab_fits(model, tokenizer)
    return model.eval(), tokenizer


def _build_empty(sizes: ModelSizes, parts: Parts, weights: Weights) -> EncoderWithHeads:
    """An uninitialized network with the heads of these weights."""
    row, discriminator = "row_head.pool" in parts.layers, "discriminator_head.dense" in parts.layers
    model = EncoderWithHeads(
        sizes.network, sizes.vocab_size, sizes.max_positions, parts.has_lm_head, row, discriminator
    )
    if "row_head.classify" in parts.layers:
        model.row_head = PoolerClassifier(sizes.network, len(weights["row_head.classify.bias"]))
    if "token_classifier" in parts.layers:
        model.token_classifier = nn.Linear(sizes.network.width, len(weights["token_classifier.bias"]))
    return model


def read_weights(folder: Path) -> Weights:
    """All tensors of a folder: of one file, or of the files that an index names."""
    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    if single.is_file():
        return _tensors(single)
    if index.is_file():
        files = sorted({str(name) for name in read_settings(index).get("weight_map", {}).values()})
        if any(Path(file).name != file for file in files):
            raise InputError(f"{index} points outside of its folder; take the folder from its source again.")
        return {name: tensor for file in files for name, tensor in _tensors(folder / file).items()}
    if list(folder.glob("*.bin")):
        raise InputError(
            f"{folder} holds its weights as pickle (.bin), which can run code when it is read and is therefore never "
            "read here. Convert it to model.safetensors first, or take a folder that has it."
        )
    raise InputError(f"{folder} has no model.safetensors; give a folder that holds the weights.")


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
        raise InputError(
            f"The weights in {folder} do not fit its config.json: {first_few(wrong, 3)}. Take the folder "
            "from its source again."
        )
