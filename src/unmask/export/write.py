"""Export: a network of ours as a folder that `transformers` loads with no remote code.

What arrives: a `Model` with its `Tokenizer`. What leaves: a folder with weights, settings, tokenizer and card, proven.
What never happens here: pickle, a half-written folder, or one whose numbers were not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save

from unmask.errors import InputError
from unmask.export.bert import Architecture, table_of
from unmask.export.bert_config import write_config
from unmask.export.card import About, write_card
from unmask.export.proof import SENTENCES, Proof, need_transformers, prove
from unmask.export.read import check_room, load
from unmask.export.table import Weights, some
from unmask.export.tokenizer_files import special_names, tokenizer_config, with_template
from unmask.nets.model import Model
from unmask.shards.files import new_file, new_folder, write_json, write_text
from unmask.tokenize.tokenizer import Tokenizer

NOTHING_KNOWN = About()


def export(
    model: Model,
    tokenizer: Tokenizer,
    folder: Path,
    architecture: Architecture,
    about: About = NOTHING_KNOWN,
    lines: Sequence[str] = SENTENCES,
    labels: Sequence[str] = (),
) -> Proof:
    """Write a folder, read it back with both libraries, and keep it only if they agree on the given lines of text."""
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already and is not empty; choose another folder for the export.")
    check_room(model, tokenizer)
    tokenizer = with_template(tokenizer, model.shape.segments)
    config = write_config(model, tokenizer.vocab.pad, architecture, labels)
    weights = their_weights(model, architecture)
    need_transformers()
    with new_folder(folder) as part:
        write_json(part / "config.json", config)
        with new_file(part / "model.safetensors") as file:
            file.write(save(weights, metadata={"format": "pt"}))
        write_text(part / "tokenizer.json", tokenizer.pipeline.to_str(pretty=True) + "\n")
        write_json(part / "tokenizer_config.json", tokenizer_config(tokenizer, model.positions))
        write_json(part / "special_tokens_map.json", special_names(tokenizer))
        back = _read_back(part, weights, architecture)
        proof = prove(part, back, tokenizer, architecture, lines)
        parameters = sum(tensor.numel() for tensor in weights.values())
        write_text(part / "README.md", write_card(config, parameters, about, proof))
    return proof


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
