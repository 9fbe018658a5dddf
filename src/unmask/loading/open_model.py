"""A network to use, wherever it lies: a run of `unmask pretrain`, or a Hugging Face folder.

What arrives: a folder. What leaves: a `Network`: the network, its tokenizer, and what is known about it.
What never happens here: a change of the folder, or weights that are not what was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.config.inference import CheckpointChoice
from unmask.config.model_type import ModelType
from unmask.config.network import read_network_config
from unmask.core.errors import InputError
from unmask.core.io.atomic import read_versioned_json
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.artifact import TASK_FILE
from unmask.finetuning.multitask.artifact import is_encoder_folder, load_encoder
from unmask.interop.hf.architecture import DOWNSTREAM_TASKS
from unmask.interop.hf.load import check_vocab_fits, load_hf_model
from unmask.interop.hf.lookup import model_type_for, tasks_of
from unmask.interop.hf.model_card import ModelInfo
from unmask.interop.hf.tokenizer_files import read_settings
from unmask.loading.from_checkpoint import generator_from_state, heads_left_out, model_from_state
from unmask.nets.model import EncoderWithHeads
from unmask.train.rundir.checkpoint import (
    CHECKPOINTS,
    MODEL,
    checkpoint_name,
    list_checkpoints,
    read_state,
    read_tensors,
)
from unmask.train.rundir.folder import RUN, is_run_folder


@dataclass(frozen=True, slots=True, eq=False)
class LoadedNetwork:
    """A network with everything that comes along."""

    model: EncoderWithHeads
    tokenizer: Tokenizer
    name: str
    info: ModelInfo
    model_type: ModelType = ModelType.BERT
    """Whose names it is written in."""
    generator: EncoderWithHeads | None = None
    """The small network that wrote the guesses which this one learned to tell from text (ELECTRA); not every network
    has had one."""
    heads_left_out: tuple[str, ...] = ()
    """The heads of the run that have no place in the network."""


def open_model(folder: Path, checkpoint: CheckpointChoice = CheckpointChoice.LAST) -> LoadedNetwork:
    """Open a run folder or a Hugging Face folder. The network is on the CPU, in float32, and at rest."""
    folder = Path(folder)
    if is_finetuned(folder) or _has_task_head(folder / "config.json"):
        raise InputError(
            f"{folder} holds a network that was tuned for a task: it answers that task and nothing else. Name the run "
            "or the folder that it was tuned from."
        )
    if is_encoder_folder(folder):
        model, tokenizer = load_encoder(folder)
        name = folder.resolve().name
        return LoadedNetwork(model, tokenizer, name, ModelInfo(name=name), model_type_for(model.config, ModelType.BERT))
    if is_run_folder(folder):
        return _open_run(folder, checkpoint)
    if (folder / "config.json").is_file():
        model, tokenizer = load_hf_model(folder)
        name = folder.resolve().name
        return LoadedNetwork(model, tokenizer, name, ModelInfo(name=name), model_type_in(folder))
    raise InputError(_explain_missing(folder))


def is_finetuned(folder: Path) -> bool:
    """Whether a folder is one that `unmask tune` has finished."""
    return (folder / TASK_FILE).is_file()


def _has_task_head(config: Path) -> bool:
    """Whether a Hugging Face folder holds a network that was tuned for a task."""
    if not config.is_file():
        return False
    named = read_settings(config).get("architectures") or ()
    return any(not DOWNSTREAM_TASKS.isdisjoint(tasks_of(dialect, named)) for dialect in ModelType)


def model_type_in(folder: Path) -> ModelType:
    """Whose names the network of a folder is written in: as its recipe or its settings say, BERT's if neither does."""
    if (folder / RUN).is_file():
        return _model_type_of(read_versioned_json(folder / RUN, "Name another run.", InputError).get("recipe", {}))
    if (folder / "config.json").is_file():
        kind = read_settings(folder / "config.json").get("model_type")
        return next((dialect for dialect in ModelType if dialect.value == kind), ModelType.BERT)
    return ModelType.BERT


def _model_type_of(recipe: Mapping[str, Any]) -> ModelType:
    """Recipes that were saved before there were dialects are BERT's."""
    return ModelType[recipe.get("model_type", ModelType.BERT.name)]


def _explain_missing(folder: Path) -> str:
    """Why a folder holds no network, in a sentence."""
    looked_for = (
        "Needed is the folder of a run (run.json and checkpoints, as unmask pretrain leaves them) or a Hugging Face "
        "folder (config.json, model.safetensors and a tokenizer)."
    )
    if not folder.exists():
        return f"{folder}: there is no such folder, and nothing is downloaded. {looked_for}"
    if not folder.is_dir():
        return f"{folder} is a file. {looked_for}"
    if (folder / "manifest.json").is_file():
        return (
            f"{folder} is a prepared corpus, not a network. Train one on it first, for example with: "
            f"unmask pretrain bert --size tiny --data {folder} --out runs/tiny --steps 1000"
        )
    what = "holds neither run.json nor config.json" if any(folder.iterdir()) else "is empty"
    return f"{folder} {what}. {looked_for}"


def _open_run(folder: Path, which: CheckpointChoice) -> LoadedNetwork:
    said = _read_run(folder / RUN)
    checkpoint = _checkpoint(folder, which)
    try:
        trunk = read_network_config(said["recipe"]["network"])
        sizes, dialect = (int(said["vocabulary"]), int(said["positions"])), _model_type_of(said["recipe"])
        about = _model_info(folder, said, int(checkpoint.name.removeprefix("step-")))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder / RUN} does not describe a run of unmask pretrain ({error!r} is missing or odd). Name the "
            "folder that was given to pretrain as --out."
        ) from error
    state = read_tensors(checkpoint, MODEL)
    model, generator = (
        model_from_state(state, trunk, *sizes),
        generator_from_state(state, said["recipe"], trunk, *sizes),
    )
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    check_vocab_fits(model, tokenizer)
    left = heads_left_out(state, model.vocab_size)
    return LoadedNetwork(model, tokenizer, about.name, about, dialect, generator, left)


def _read_run(path: Path) -> dict[str, Any]:
    said = read_versioned_json(path, "Name another run.", InputError)
    if said.get("kind") != "pretrain":
        raise InputError(f"{path} does not describe a run of unmask pretrain. Name the folder of such a run.")
    return said


def _checkpoint(folder: Path, which: CheckpointChoice) -> Path:
    found = list_checkpoints(folder / CHECKPOINTS)
    if not found:
        raise InputError(f"The run in {folder} has saved no checkpoint yet. Wait for the first, or start it again.")
    if which is CheckpointChoice.BEST:
        best = checkpoint_name(read_state(found[-1]).best.step)
        return next((path for path in found if path.name == best), found[-1])
    return found[-1]


def _model_info(folder: Path, said: Mapping[str, Any], step: int) -> ModelInfo:
    recipe, corpus = said["recipe"], said["corpus"]
    origin = f", continued from {Path(said['from']).name}" if said.get("from") else ""
    return ModelInfo(
        name=folder.resolve().name,
        recipe=f"{recipe['name']}, {step:,} steps{origin}",
        paper=recipe["paper"],
        fingerprint=said["fingerprint"],
        corpus={what: int(corpus[what]) for what in ("documents", "tokens")},
    )
