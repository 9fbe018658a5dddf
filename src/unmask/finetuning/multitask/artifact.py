"""What several tasks have learned together, as folders: the trunk once, and a head for each task beside it.

What arrives: a trunk, or one task's share of a learner. What leaves: `trunk/`, from which every command can start, and
a tuned folder for each task that says where its trunk lies.
What never happens here: a second copy of the trunk, or pickle. `trunk.json` is written last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save

from unmask import __version__
from unmask.config.network import NetworkConfig, read_network_config
from unmask.config.optim import Schedule
from unmask.core.codec import encode
from unmask.core.errors import InputError, RecipeError, UserError
from unmask.core.io.atomic import atomic_file, read_versioned_json, write_text, write_versioned_json
from unmask.core.io.atomic import digest_file as digest_of_file
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.artifact import MODEL_FILE, TOKENIZER_FILE, BaseModelRef, FineTunedModel, save_finetuned
from unmask.finetuning.finetune import model_digest
from unmask.finetuning.methods.protocol import DEFAULT_SCHEDULE, CachedLayers, FullFineTuning
from unmask.finetuning.parameter_roles import ParameterLocation, ParameterRole
from unmask.nets.model import EncoderWithHeads
from unmask.train.multi_head_model import MultiHeadModel, load_weights
from unmask.train.optim.param_lr import ParamLR

ENCODER_FOLDER, ENCODER_FILE = "encoder", "encoder.json"
"""The folder of a trunk, and what is said about it there."""


@dataclass(frozen=True, slots=True)
class SharedEncoder:
    """The trunk has learned with several heads, so it is saved once, and each head apart from it."""

    name: ClassVar[str] = "shared"
    default_lr: ClassVar[float] = FullFineTuning.default_lr
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = True

    def check(self, trunk: NetworkConfig) -> None:
        """Any will do."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Nothing is added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Of what one task has, only the head is its own."""
        return ParamLR(1.0 if location.role is ParameterRole.HEAD else 0.0)


def save_head(tuned: FineTunedModel, folder: Path, encoder: EncoderWithHeads, facts: Mapping[str, object]) -> None:
    """Write one task's head into its folder; the trunk lies beside that folder."""
    root = BaseModelRef(ENCODER_FOLDER, f"../{ENCODER_FOLDER}", model_digest(encoder))
    folder.mkdir(exist_ok=True)
    save_finetuned(replace(tuned, method=SharedEncoder()), folder, root, facts)


def save_encoder(encoder: EncoderWithHeads, tokenizer: Tokenizer, folder: Path, facts: Mapping[str, object]) -> None:
    """Write a trunk with its tokenizer; last of all what is known about it."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in encoder.named_parameters()}
    broken = [name for name, tensor in weights.items() if not tensor.isfinite().all()]
    if broken:
        raise UserError(f"The network holds numbers that are not finite, first in {broken[0]}. Take a lower --rate.")
    folder.mkdir(exist_ok=True)
    with atomic_file(folder / MODEL_FILE) as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER_FILE, tokenizer.pipeline.to_str(pretty=True))
    said = {
        "unmask": __version__,
        "network": encode(encoder.config),
        "vocabulary": encoder.vocab_size,
        "positions": encoder.max_positions,
        "files": {MODEL_FILE: digest_of_file(folder / MODEL_FILE)},
    }
    write_versioned_json(folder / ENCODER_FILE, said | dict(facts))


def is_encoder_folder(folder: Path) -> bool:
    """Whether a folder holds a trunk that was saved alone."""
    return (folder / ENCODER_FILE).is_file()


def load_encoder(folder: Path) -> tuple[EncoderWithHeads, Tokenizer]:
    """Read a trunk back: in float32, on the CPU, at rest."""
    said = read_versioned_json(folder / ENCODER_FILE, "Make the folder again.", InputError)
    try:
        shape = read_network_config(said["network"])
        model = EncoderWithHeads(
            shape, int(said["vocabulary"]), int(said["positions"]), has_lm_head=False, has_row_head=False
        )
        digest = said["files"][MODEL_FILE]
    except (KeyError, TypeError, ValueError, RecipeError) as error:
        raise InputError(
            f"{folder / ENCODER_FILE} does not describe a trunk ({error!r}). Make the folder again."
        ) from error
    try:
        if digest_of_file(folder / MODEL_FILE) != digest:
            raise InputError(
                f"{folder / MODEL_FILE} is not what was written: its digest differs. Make the folder again."
            )
        load_weights(model, load_file(folder / MODEL_FILE))
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder / MODEL_FILE} cannot be read ({error}). Make the folder again.") from error
    return model.eval(), Tokenizer.load(folder / TOKENIZER_FILE)
