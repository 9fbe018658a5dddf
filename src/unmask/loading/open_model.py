"""Open a model from any folder: a pre-training run, a Hugging Face folder, or an encoder of multi-task fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.config.attention_pattern import FULL, WITHIN_DOCUMENT, AttentionPattern
from unmask.config.inference import CheckpointChoice
from unmask.config.model_type import ModelInfo, ModelType
from unmask.config.network import read_network_config
from unmask.core.codec import decode
from unmask.core.errors import InputError, RecipeError
from unmask.core.io.atomic import read_versioned_json
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.loading.encoder_folder import is_encoder_folder, load_encoder
from unmask.loading.from_checkpoint import generator_from_state, heads_left_out, model_from_state
from unmask.nets.model import EncoderWithHeads, check_vocab_fits
from unmask.train.rundir.checkpoint import (
    CHECKPOINTS,
    MODEL,
    checkpoint_name,
    list_checkpoints,
    read_state,
    read_tensors,
)
from unmask.train.rundir.folder import RUN, is_run_folder

TASK_FILE, CONFIG_FILE = "task.json", "config.json"
"""The files that mark a folder of `unmask finetune` and a Hugging Face folder."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedNetwork:
    """A network with its tokenizer and what is known about its training."""

    model: EncoderWithHeads
    tokenizer: Tokenizer
    name: str
    info: ModelInfo
    model_type: ModelType = ModelType.BERT
    """The Hugging Face model type it is exported as."""
    generator: EncoderWithHeads | None = None
    """ELECTRA's generator; only runs of such a recipe have one."""
    heads_left_out: tuple[str, ...] = ()
    """Heads of the run that `EncoderWithHeads` has no place for."""


def open_model(
    folder: Path, checkpoint: CheckpointChoice = CheckpointChoice.LAST, any_attention: bool = False
) -> LoadedNetwork:
    """Open a folder. The network is in float32 on the CPU, in eval mode. Fine-tuned models are refused.

    Networks that were not trained to read whole rows are refused too, unless their weights alone are needed
    (`any_attention`).
    """
    folder = Path(folder)
    if is_finetuned(folder) or _has_task_head(folder / CONFIG_FILE):
        raise InputError(
            f"{folder} holds a model that was fine-tuned for a task; needed is a pre-trained one. Name the run or the "
            "folder that it was fine-tuned from."
        )
    name = folder.resolve().name
    if is_encoder_folder(folder):
        from unmask.interop.hf.lookup import model_type_for

        model, tokenizer = load_encoder(folder)
        return LoadedNetwork(model, tokenizer, name, ModelInfo(name=name), model_type_for(model.config, ModelType.BERT))
    if is_run_folder(folder):
        return _open_run(folder, checkpoint, any_attention)
    if (folder / CONFIG_FILE).is_file():
        from unmask.interop.hf.load import load_hf_model

        model, tokenizer = load_hf_model(folder)
        return LoadedNetwork(model, tokenizer, name, ModelInfo(name=name), model_type_in(folder))
    raise InputError(_explain_missing(folder))


def is_finetuned(folder: Path) -> bool:
    """Whether a folder holds a finished fine-tuned model."""
    return (folder / TASK_FILE).is_file()


def _has_task_head(config: Path) -> bool:
    """Whether a Hugging Face folder holds a model that was fine-tuned for a task."""
    if not config.is_file():
        return False
    from unmask.interop.hf.lookup import tasks_of
    from unmask.interop.hf.model_map import DOWNSTREAM_TASKS
    from unmask.interop.hf.tokenizer_files import read_settings

    names = read_settings(config).get("architectures") or ()
    return any(not DOWNSTREAM_TASKS.isdisjoint(tasks_of(model_type, names)) for model_type in ModelType)


def model_type_in(folder: Path) -> ModelType:
    """The model type that the recipe or the `config.json` of a folder names; BERT if there is neither."""
    if (folder / RUN).is_file():
        return ModelType[_read_run(folder / RUN)["recipe"].get("model_type", ModelType.BERT.name)]
    if (folder / CONFIG_FILE).is_file():
        from unmask.interop.hf.tokenizer_files import read_settings

        name = read_settings(folder / CONFIG_FILE).get("model_type")
        return next((one for one in ModelType if one.value == name), ModelType.BERT)
    return ModelType.BERT


def _explain_missing(folder: Path) -> str:
    """The message for a folder that holds no model."""
    needed = (
        "Needed is the folder of a run (run.json and checkpoints, as unmask pretrain leaves them) or a Hugging Face "
        "folder (config.json, model.safetensors and a tokenizer)."
    )
    if not folder.exists():
        return f"{folder}: there is no such folder, and nothing is downloaded. {needed}"
    if not folder.is_dir():
        return f"{folder} is a file. {needed}"
    if (folder / "manifest.json").is_file():
        return (
            f"{folder} is a prepared corpus, not a network. Train one on it first, for example with: "
            f"unmask pretrain bert --size tiny --data {folder} --out runs/tiny --steps 1000"
        )
    what = "holds neither run.json nor config.json" if any(folder.iterdir()) else "is empty"
    return f"{folder} {what}. {needed}"


def _open_run(folder: Path, which: CheckpointChoice, any_attention: bool) -> LoadedNetwork:
    run = _read_run(folder / RUN)
    checkpoint = _checkpoint(folder, which)
    try:
        recipe = run["recipe"]
        network, model_type = (
            read_network_config(recipe["network"]),
            ModelType[recipe.get("model_type", ModelType.BERT.name)],
        )
        tasks = [task for stage in recipe["stages"] for task in stage["tasks"]]
        patterns = [decode(task["attention"], AttentionPattern) for task in tasks if "attention" in task]
        sizes = int(run["vocabulary"]), int(run["positions"])
        info = _model_info(folder, run, int(checkpoint.name.removeprefix("step-")))
    except (KeyError, TypeError, ValueError, RecipeError) as error:
        raise InputError(
            f"{folder / RUN} does not describe a run of unmask pretrain ({error!r} is missing or odd). Name the "
            "folder that was given to pretrain as --out."
        ) from error
    if not any_attention:
        _check_reads_whole_rows(folder, patterns)
    state = read_tensors(checkpoint, MODEL)
    model = model_from_state(state, network, *sizes)
    generator = generator_from_state(state, recipe, network, *sizes)
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    check_vocab_fits(model, tokenizer)
    left_out = heads_left_out(state, model.vocab_size)
    return LoadedNetwork(model, tokenizer, info.name, info, model_type, generator, left_out)


def _check_reads_whole_rows(folder: Path, patterns: Sequence[AttentionPattern]) -> None:
    """Refuse a network whose states would mean something else without its attention pattern."""
    for pattern in patterns:
        if pattern not in (FULL, WITHIN_DOCUMENT):
            rules = " and ".join(sorted({type(stream.rule).__name__ for stream in pattern.streams}))
            raise InputError(
                f"{folder} holds a network that was trained with {rules} attention, but needed is one that reads whole "
                "rows (Full or WithinDocument). It can be trained further with --init-from; take another run for this."
            )


def _read_run(path: Path) -> dict[str, Any]:
    run = read_versioned_json(path, "Name another run.", InputError)
    if run.get("kind") != "pretrain":
        raise InputError(f"{path} does not describe a run of unmask pretrain. Name the folder of such a run.")
    return run


def _checkpoint(folder: Path, which: CheckpointChoice) -> Path:
    found = list_checkpoints(folder / CHECKPOINTS)
    if not found:
        raise InputError(f"The run in {folder} has saved no checkpoint yet. Wait for the first, or start it again.")
    if which is CheckpointChoice.BEST:
        best = checkpoint_name(read_state(found[-1]).best.step)
        return next((path for path in found if path.name == best), found[-1])
    return found[-1]


def _model_info(folder: Path, run: Mapping[str, Any], step: int) -> ModelInfo:
    recipe, corpus = run["recipe"], run["corpus"]
    origin = f", continued from {Path(run['from']).name}" if run.get("from") else ""
    return ModelInfo(
        name=folder.resolve().name,
        recipe=f"{recipe['name']}, {step:,} steps{origin}",
        paper=recipe["paper"],
        fingerprint=run["fingerprint"],
        corpus={what: int(corpus[what]) for what in ("documents", "tokens")},
    )
