"""A folder with one encoder and its tokenizer, without heads: written by multi-task fine-tuning, opened like a run.

`encoder.json` is written last, so its presence means that the folder is complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save

from unmask import __version__
from unmask.config.network import read_network_config
from unmask.core.codec import encode
from unmask.core.errors import InputError, RecipeError, UserError
from unmask.core.io.atomic import atomic_file, digest_file, read_versioned_json, write_text, write_versioned_json
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.nets.model import EncoderWithHeads
from unmask.train.multi_head_model import load_weights

ENCODER_FILE, MODEL_FILE, TOKENIZER_FILE = "encoder.json", "model.safetensors", "tokenizer.json"


def is_encoder_folder(folder: Path) -> bool:
    """Whether a folder holds an encoder that `save_encoder` wrote."""
    return (folder / ENCODER_FILE).is_file()


def save_encoder(encoder: EncoderWithHeads, tokenizer: Tokenizer, folder: Path, facts: Mapping[str, object]) -> None:
    """Write the encoder with its tokenizer; `facts` are added to `encoder.json`."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in encoder.named_parameters()}
    broken = [name for name, tensor in weights.items() if not tensor.isfinite().all()]
    if broken:
        raise UserError(f"The weights are not finite, first in {broken[0]}. Use a lower --lr.")
    folder.mkdir(exist_ok=True)
    with atomic_file(folder / MODEL_FILE) as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER_FILE, tokenizer.pipeline.to_str(pretty=True))
    description = {
        "unmask": __version__,
        "network": encode(encoder.config),
        "vocab_size": encoder.vocab_size,
        "max_positions": encoder.max_positions,
        "files": {MODEL_FILE: digest_file(folder / MODEL_FILE)},
    }
    write_versioned_json(folder / ENCODER_FILE, description | dict(facts))


def load_encoder(folder: Path) -> tuple[EncoderWithHeads, Tokenizer]:
    """Read an encoder folder: the network in float32 on the CPU, in eval mode."""
    description = read_versioned_json(folder / ENCODER_FILE, "Make the folder again.", InputError)
    try:
        config = read_network_config(description["network"])
        sizes = int(description["vocab_size"]), int(description["max_positions"])
        digest = description["files"][MODEL_FILE]
    except (KeyError, TypeError, ValueError, RecipeError) as error:
        raise InputError(
            f"{folder / ENCODER_FILE} does not describe an encoder ({error!r}). Make the folder again."
        ) from error
    model = EncoderWithHeads(config, *sizes, has_lm_head=False, has_row_head=False)
    try:
        if digest_file(folder / MODEL_FILE) != digest:
            raise InputError(
                f"{folder / MODEL_FILE} is not what was written: its digest differs. Make the folder again."
            )
        load_weights(model, load_file(folder / MODEL_FILE))
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder / MODEL_FILE} cannot be read ({error}). Make the folder again.") from error
    return model.eval(), Tokenizer.load(folder / TOKENIZER_FILE)
