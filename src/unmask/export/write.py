"""Export: a network of ours as a folder that `transformers` loads with no remote code.

What arrives: a `Model` with its `Tokenizer`. What leaves: a folder with weights, settings, tokenizer and card, proven.
What never happens here: pickle, a half-written folder, or one whose numbers were not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from unmask.errors import InputError
from unmask.export.bert import Architecture, table_of
from unmask.export.bert_config import write_config
from unmask.export.card import About, write_card
from unmask.export.extra import Extra, Written
from unmask.export.library import need_transformers
from unmask.export.proof import SENTENCES, Proof, prove
from unmask.export.read import check_room, load
from unmask.export.table import Weights, some
from unmask.export.task import NO_TASK, Task
from unmask.export.tokenizer_files import special_names, tokenizer_config, with_template
from unmask.nets.model import Model
from unmask.shards.files import new_file, new_folder, write_json, write_text
from unmask.tokenize.tokenizer import Tokenizer

NOTHING_KNOWN = About()
NO_POOLER = (
    "This network was trained without a pooler. The one that BertModel has is all zeros: take the hidden states."
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
    if architecture is Architecture.ENCODER and model.row is None:
        model, task = _with_pooler(model), replace(task, notes=(*task.notes, NO_POOLER))
    tokenizer = with_template(tokenizer, model.shape.segments)
    config = write_config(model, tokenizer.vocab.pad, architecture, task)
    weights = their_weights(model, architecture)
    need_transformers()
    for extra in extras:
        extra.need()
    with new_folder(folder) as part:
        _write(part, config, weights, tokenizer, task.length or model.positions)
        written = Written(part, _read_back(part, weights, architecture), tokenizer, architecture, lines)
        proof = replace(prove(written), others=tuple(extra.add(written) for extra in extras))
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


@torch.no_grad()
def _with_pooler(model: Model) -> Model:
    """The same trunk below a pooler that says nothing: a `BertModel` without one would draw it by lot."""
    made = Model(model.shape, model.vocabulary, model.positions, tokens=False)
    assert made.row is not None, "a model has a head for rows unless told otherwise"
    made.trunk = model.trunk
    for parameter in made.row.parameters():
        parameter.zero_()
    return made.eval()


def their_weights(model: Model, architecture: Architecture) -> Weights:
    """The weights in their names, in float32 on the CPU, tied ones once."""
    state = model.state_dict()
    broken = [name for name, tensor in state.items() if not tensor.isfinite().all()]
    if broken:
        raise InputError(
            f"The network holds numbers that are not finite in {some(broken)}; take an earlier checkpoint."
        )
    theirs = table_of(architecture, model.shape.depth).to_theirs(state)
    return {name: tensor.detach().to("cpu", torch.float32).contiguous() for name, tensor in theirs.items()}


def _read_back(folder: Path, weights: Weights, architecture: Architecture) -> Model:
    """The folder as our own import sees it. Written again, it must be the same weights bit for bit."""
    back, _ = load(folder)
    again = their_weights(back, architecture)
    changed = [name for name, tensor in weights.items() if not torch.equal(tensor, again[name])]
    assert again.keys() == weights.keys(), "the table is not its own inverse"
    assert not changed, f"the table is not its own inverse for {some(changed)}"
    return back
