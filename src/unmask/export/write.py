"""Export: a network of ours as a folder that `transformers` loads with no remote code.

What arrives: a `Model` with its `Tokenizer`. What leaves: a folder with weights, settings, tokenizer and card, proven.
What never happens here: pickle, a half-written folder, or one whose numbers were not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import nn

from unmask.errors import InputError
from unmask.export.architecture import FOR_A_TASK, Architecture, Purpose
from unmask.export.card import About, write_card
from unmask.export.dialects import grammar_of, parts_of, table_of
from unmask.export.extra import Extra, Written
from unmask.export.library import need_transformers
from unmask.export.proof import SENTENCES, Proof, prove
from unmask.export.read import check_room, load
from unmask.export.settings import write_config
from unmask.export.table import Weights, some
from unmask.export.task import NO_TASK, Task
from unmask.export.tokenizer_files import special_names, tokenizer_config, with_template
from unmask.nets.model import Model
from unmask.shards.files import Kept, new_file, new_folder, write_json, write_text
from unmask.tokenize.tokenizer import Tokenizer

NOTHING_KNOWN = About()
NO_POOLER = "This network was trained without a pooler. The one that {} has is all zeros: take the hidden states."
UNSHARED = (
    "Layers of this network share weights in a way that {} has no words for. Every layer was written with a copy of "
    "its own: the numbers are the same, but further training would let the copies drift apart."
)

RENUMBERED = (
    "{} numbers positions from the id of padding on, which is {} for this tokenizer; so the position embeddings were "
    "moved to begin with number {}. The numbers themselves are the same."
)


def export(
    model: Model,
    tokenizer: Tokenizer,
    folder: Path,
    architecture: Architecture,
    about: About = NOTHING_KNOWN,
    lines: Sequence[str] = SENTENCES,
    task: Task = NO_TASK,
    extras: Sequence[Extra] = (),
) -> Proof:
    """Write a folder, read it back with both libraries, and keep it only if they agree on the given lines of text.

    `extras` are files for further libraries; each is compared as well before the folder is kept.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already and is not empty; choose another folder for the export.")
    check_room(model, tokenizer)
    notes = tuple(_notes(model, architecture, tokenizer.vocab.pad))
    task = replace(task, notes=(*task.notes, *notes))
    if _lacks_pooler(model, architecture):
        model = _with_pooler(model)
    if _counts_otherwise(model, architecture, tokenizer.vocab.pad):
        model = _renumbered(model, tokenizer.vocab.pad + 1)
    tokenizer = with_template(tokenizer, model.shape.segments, architecture.purpose in FOR_A_TASK)
    config = write_config(model, tokenizer.vocab.pad, architecture, task)
    weights = their_weights(model, architecture)
    need_transformers()
    for extra in extras:
        extra.need()
    with new_folder(folder, Kept.NOTHING) as part:
        _write(part, config, weights, tokenizer, task.length or model.positions)
        written = Written(part, _read_back(part, weights, architecture), tokenizer, architecture, lines)
        proof = replace(prove(written), notes=notes, others=tuple(extra.add(written) for extra in extras))
        parameters = sum(tensor.numel() for tensor in weights.values())
        write_text(part / "README.md", write_card(config, parameters, about, proof, task, extras))
    return proof


def _write(part: Path, config: Mapping[str, Any], weights: Weights, tokenizer: Tokenizer, length: int) -> None:
    """Settings, weights and tokenizer."""
    write_json(part / "config.json", config)
    with new_file(part / "model.safetensors") as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_text(part / "tokenizer.json", tokenizer.pipeline.to_str(pretty=True) + "\n")
    write_json(part / "tokenizer_config.json", tokenizer_config(tokenizer, length))
    write_json(part / "special_tokens_map.json", special_names(tokenizer))


def _notes(model: Model, architecture: Architecture, pad: int) -> Iterator[str]:
    """What is not as a reader would expect."""
    if _lacks_pooler(model, architecture):
        yield NO_POOLER.format(architecture)
    if _unshared(model, architecture):
        yield UNSHARED.format(grammar_of(architecture.dialect).name)
    if _counts_otherwise(model, architecture, pad):
        yield RENUMBERED.format(grammar_of(architecture.dialect).name, pad, pad + 1)


def _unshared(model: Model, architecture: Architecture) -> bool:
    """Whether layers that share weights are written one by one."""
    return grammar_of(architecture.dialect).stack.written(model.shape).sets != model.shape.sets


def _lacks_pooler(model: Model, architecture: Architecture) -> bool:
    needed = architecture.purpose is Purpose.ENCODER and "row.pool" in parts_of(architecture).layers
    return needed and model.row is None


@torch.no_grad()
def _with_pooler(model: Model) -> Model:
    """The same trunk below a pooler that says nothing: an encoder of theirs without one would draw it by lot."""
    made = Model(model.shape, model.vocabulary, model.positions, tokens=False)
    assert made.row is not None, "a model has a head for rows unless told otherwise"
    made.trunk = model.trunk
    for parameter in made.row.parameters():
        parameter.zero_()
    return made.eval()


def _counts_otherwise(model: Model, architecture: Architecture, pad: int) -> bool:
    """Whether the positions of a network begin elsewhere than its class would let them begin with this tokenizer."""
    return grammar_of(architecture.dialect).after_pad and model.shape.first_position not in (0, pad + 1)


@torch.no_grad()
def _renumbered(model: Model, first: int) -> Model:
    """The same network with positions that begin with another number. Rows before the first are never read."""
    made = deepcopy(model)
    embed, shape = made.trunk.embed, made.shape
    assert isinstance(embed.position, nn.Embedding), "positions that are not learned have no rows"
    used = embed.position.weight[shape.first_position :]
    embed.position = nn.Embedding(first + len(used), used.shape[1])
    embed.position.weight[:first] = 0.0
    embed.position.weight[first:] = used
    embed.first, made.trunk.trunk = first, replace(shape, first_position=first)
    return made


def their_weights(model: Model, architecture: Architecture) -> Weights:
    """The weights in their names, in float32 on the CPU, tied ones once."""
    state = model.state_dict()
    broken = [name for name, tensor in state.items() if not tensor.isfinite().all()]
    if broken:
        raise InputError(
            f"The network holds numbers that are not finite in {some(broken)}; take an earlier checkpoint."
        )
    theirs = table_of(architecture, model.shape).to_theirs(state)
    apart = _unshared(model, architecture)  # a file holds no tensor under two names
    return {name: tensor.detach().to("cpu", torch.float32, copy=apart).contiguous() for name, tensor in theirs.items()}


def _read_back(folder: Path, weights: Weights, architecture: Architecture) -> Model:
    """The folder as our own import sees it. Written again, it must be the same weights bit for bit."""
    back, _ = load(folder)
    again = their_weights(back, architecture)
    changed = [name for name, tensor in weights.items() if not torch.equal(tensor, again[name])]
    assert again.keys() == weights.keys(), "the table is not its own inverse"
    assert not changed, f"the table is not its own inverse for {some(changed)}"
    return back
