"""Export a fine-tuned model as a Hugging Face folder, and prove that both libraries give the same predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.config.model_type import ModelInfo
from unmask.core.errors import InputError
from unmask.finetuning.artifact import BaseModelRef, FineTunedNetwork, load_finetuned, read_task
from unmask.finetuning.export.hf_architecture import architecture_for, model_for_export
from unmask.interop.extra_format import ExtraFormat
from unmask.interop.hf.lookup import model_type_for
from unmask.interop.hf.model_map import Architecture
from unmask.interop.hf.parity_check import SENTENCES, ParityReport
from unmask.interop.hf.save import export_hf
from unmask.loading.open_model import model_type_in, open_model
from unmask.nets.model import EncoderWithHeads


def export_finetuned(
    source: Path,
    folder: Path,
    lines: Sequence[str] = SENTENCES,
    extras: Sequence[ExtraFormat] = (),
    network: Path | None = None,
) -> tuple[Architecture, ParityReport]:
    """Write a fine-tuned model with its labels; the folder is kept only if the parity check passes."""
    tuned = open_finetuned(source, network)
    model_type = model_type_in(network or source / read_task(source)["base_model"]["folder"])
    architecture, task = architecture_for(tuned, model_type_for(tuned.learner.network.config, model_type))
    model = model_for_export(tuned)
    info = _model_info(source.resolve().name, read_task(source))
    task = replace(task, max_length=tuned.max_length)
    return architecture, export_hf(model, tuned.tokenizer, folder, architecture, info, lines, task, extras)


def open_finetuned(folder: Path, network: Path | None = None) -> FineTunedNetwork:
    """Load a fine-tuned model; a base model is opened from `network`, or from where it was."""

    def load_base(base: BaseModelRef) -> EncoderWithHeads:
        base_folder = network or folder / base.folder
        if not base_folder.is_dir():
            raise InputError(
                f"{folder} holds only delta weights, and their base model is not in {base_folder}. Restore it, or give "
                "its folder with --base-model."
            )
        return open_model(base_folder).model

    return load_finetuned(folder, load_base)


def _model_info(name: str, saved: Mapping[str, Any]) -> ModelInfo:
    """The model card entries from `task.json`; scores are those on the dev set."""
    scores = ", ".join(f"{what} {value:.4g}" for what, value in saved.get("metrics", {}).items() if value is not None)
    rows = saved.get("rows", {})
    return ModelInfo(
        name=name,
        recipe=f"fine-tuned from {saved.get('source') or 'a model'} for {saved['task_type']}"
        + (f"; {scores}" if scores else ""),
        corpus={f"rows {what}": int(number) for what, number in rows.items()},
    )
