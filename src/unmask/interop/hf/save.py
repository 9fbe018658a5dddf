"""Export a network as a Hugging Face folder: config, safetensors, tokenizer, model card and a parity check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import nn

from unmask.config.model_type import ModelInfo
from unmask.core.errors import InputError
from unmask.core.io.atomic import DiskFullAdvice, atomic_file, atomic_folder, write_json, write_text
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.interop.extra_format import ExtraFormat, WrittenFolder
from unmask.interop.hf.config_json import NO_TASK, TaskConfig, write_config
from unmask.interop.hf.load import load_hf_model
from unmask.interop.hf.lookup import model_map, parts_of, weight_table_for
from unmask.interop.hf.model_card import write_card
from unmask.interop.hf.model_map import DOWNSTREAM_TASKS, Architecture, HFTask
from unmask.interop.hf.parity_check import SENTENCES, ParityReport, check_parity
from unmask.interop.hf.tokenizer_files import special_names, tokenizer_config, with_template
from unmask.interop.hf.weight_table import Weights, first_few
from unmask.interop.optional_dependency import require_transformers
from unmask.nets.model import EncoderWithHeads, check_vocab_fits

NO_MODEL_INFO = ModelInfo()
NO_POOLER = "This network was trained without a pooler. The pooler of {} is all zeros: use the hidden states."
UNSHARED = (
    "Layers of this network share weights in a way that {} cannot express. Every layer was written with its own copy: "
    "the numbers are the same, but further training changes the copies independently."
)

RENUMBERED = (
    "{} numbers positions after the padding id, which is {} for this tokenizer; so the position embeddings were "
    "moved to begin with number {}. The numbers themselves are the same."
)


def export_hf(
    model: EncoderWithHeads,
    tokenizer: Tokenizer,
    folder: Path,
    architecture: Architecture,
    about: ModelInfo = NO_MODEL_INFO,
    lines: Sequence[str] = SENTENCES,
    task: TaskConfig = NO_TASK,
    extras: Sequence[ExtraFormat] = (),
) -> ParityReport:
    """Write a folder, read it back with both libraries, and keep it only if their outputs on `lines` agree.

    `extras` are files for further libraries; each is compared before the folder is kept.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already and is not empty; choose another folder for the export.")
    check_vocab_fits(model, tokenizer)
    notes = tuple(_notes(model, architecture, tokenizer.vocab.pad))
    task = replace(task, notes=(*task.notes, *notes))
    if _lacks_pooler(model, architecture):
        model = _with_pooler(model)
    if _positions_differ(model, architecture, tokenizer.vocab.pad):
        model = _with_position_offset(model, tokenizer.vocab.pad + 1)
    config = write_config(model, tokenizer.vocab.pad, architecture, task)
    tokenizer = with_template(tokenizer, model.encoder.config.num_segments, architecture.task in DOWNSTREAM_TASKS)
    weights = to_hf_state_dict(model, architecture)
    require_transformers()
    for extra in extras:
        extra.require_library()
    with atomic_folder(folder, DiskFullAdvice.NOTHING) as part:
        _write(part, config, weights, tokenizer, task.max_length or model.max_positions)
        written = WrittenFolder(part, _read_back(part, weights, architecture), tokenizer, architecture, lines)
        proof = replace(check_parity(written), notes=notes, format_checks=tuple(extra.add(written) for extra in extras))
        parameters = sum(tensor.numel() for tensor in weights.values())
        write_text(part / "README.md", write_card(config, parameters, about, proof, task, extras))
    return proof


def _write(part: Path, config: Mapping[str, Any], weights: Weights, tokenizer: Tokenizer, length: int) -> None:
    """Write config, weights and tokenizer."""
    write_json(part / "config.json", config)
    with atomic_file(part / "model.safetensors") as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_text(part / "tokenizer.json", tokenizer.pipeline.to_str(pretty=True) + "\n")
    write_json(part / "tokenizer_config.json", tokenizer_config(tokenizer, length))
    write_json(part / "special_tokens_map.json", special_names(tokenizer))


def _notes(model: EncoderWithHeads, architecture: Architecture, pad: int) -> Iterator[str]:
    """Deviations of the written folder from the network, as sentences."""
    if _lacks_pooler(model, architecture):
        yield NO_POOLER.format(architecture)
    if _writes_shared_layers(model, architecture):
        yield UNSHARED.format(model_map(architecture.model_type).name)
    if _positions_differ(model, architecture, pad):
        yield RENUMBERED.format(model_map(architecture.model_type).name, pad, pad + 1)


def _writes_shared_layers(model: EncoderWithHeads, architecture: Architecture) -> bool:
    """Whether layers with shared weights are written as independent layers."""
    config = model.encoder.config
    written = model_map(architecture.model_type).layer_names.expressible(config)
    return written.num_distinct_layers != config.num_distinct_layers


def _lacks_pooler(model: EncoderWithHeads, architecture: Architecture) -> bool:
    needed = architecture.task is HFTask.ENCODER and "row_head.pool" in parts_of(architecture).layers
    return needed and model.row_head is None


@torch.no_grad()
def _with_pooler(model: EncoderWithHeads) -> EncoderWithHeads:
    """The same encoder with a pooler of zeros; `transformers` would initialize a missing pooler at random."""
    made = EncoderWithHeads(model.encoder.config, model.vocab_size, model.max_positions, has_lm_head=False)
    assert made.row_head is not None, "a model has a row head by default"
    made.network = model.network
    for parameter in made.row_head.parameters():
        parameter.zero_()
    return made.eval()


def _positions_differ(model: EncoderWithHeads, architecture: Architecture, pad: int) -> bool:
    """Whether the position offset of the network differs from the one of its class with this tokenizer."""
    is_counted = model_map(architecture.model_type).positions_after_pad
    return is_counted and model.encoder.config.position_offset not in (0, pad + 1)


@torch.no_grad()
def _with_position_offset(model: EncoderWithHeads, first: int) -> EncoderWithHeads:
    """The same network with another position offset. Rows before the offset are unused."""
    made = deepcopy(model)
    embed, config = made.encoder.embed, made.encoder.config
    assert isinstance(embed.position, nn.Embedding), "only learned positions have rows"
    used = embed.position.weight[config.position_offset :]
    embed.position = nn.Embedding(first + len(used), used.shape[1])
    embed.position.weight[:first] = 0.0
    embed.position.weight[first:] = used
    embed.position_offset, made.encoder.config = first, replace(config, position_offset=first)
    return made


def to_hf_state_dict(model: EncoderWithHeads, architecture: Architecture) -> Weights:
    """The weights under Hugging Face's names, in float32 on the CPU, tied ones once."""
    state = model.state_dict()
    broken = [name for name, tensor in state.items() if not tensor.isfinite().all()]
    if broken:
        raise InputError(
            f"The network holds numbers that are not finite in {first_few(broken)}; take an earlier checkpoint."
        )
    theirs = weight_table_for(architecture, model.encoder.config).to_hf(state)
    copy = _writes_shared_layers(model, architecture)  # safetensors refuses one tensor under two names
    return {name: tensor.detach().to("cpu", torch.float32, copy=copy).contiguous() for name, tensor in theirs.items()}


def _read_back(folder: Path, weights: Weights, architecture: Architecture) -> EncoderWithHeads:
    """The folder as `load_hf_model` reads it. Writing it again must give the same weights bit for bit."""
    back, _ = load_hf_model(folder)
    again = to_hf_state_dict(back, architecture)
    changed = [name for name, tensor in weights.items() if not torch.equal(tensor, again[name])]
    assert again.keys() == weights.keys(), "the table is not its own inverse"
    assert not changed, f"the table is not its own inverse for {first_few(changed)}"
    return back
