"""A network that was tuned for a task, as a folder that `transformers` loads.

What arrives: a folder of `unmask finetune`. What leaves: one of the classes for tasks, with the names of its labels.
What never happens here: another answer. The proof compares the answers to the task themselves, and a network whose
answers these classes cannot give is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.core.errors import InputError
from unmask.finetuning.artifact import BaseModelRef, FineTunedNetwork, load_finetuned, read_task
from unmask.finetuning.export.hf_architecture import architecture_for, model_for_export
from unmask.interop.extra_format import ExtraFormat
from unmask.interop.hf.lookup import model_type_for
from unmask.interop.hf.model_card import ModelInfo
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
    """Write a tuned network, its labels among the settings, and keep it only if both libraries answer alike."""
    tuned = open_finetuned(source, network)
    said = model_type_in(network or source / read_task(source)["base_model"]["folder"])
    architecture, task = architecture_for(tuned, model_type_for(tuned.learner.network.config, said))
    model = model_for_export(tuned)
    about = _model_info(source.resolve().name, read_task(source))
    task = replace(task, max_length=tuned.max_length)
    return architecture, export_hf(model, tuned.tokenizer, folder, architecture, about, lines, task, extras)


def open_finetuned(folder: Path, network: Path | None = None) -> FineTunedNetwork:
    """A tuned network, on its trunk; a trunk that was saved apart is looked for where it lay, or in `network`."""

    def find(root: BaseModelRef) -> EncoderWithHeads:
        lay = network or folder / root.folder
        if not lay.is_dir():
            raise InputError(
                f"{folder} holds only what was learned on top of a network, which should lie in {lay} and is not "
                "there. Put it back, or name where it lies now with --base-model."
            )
        return open_model(lay).model

    return load_finetuned(folder, find)


def _model_info(name: str, said: Mapping[str, Any]) -> ModelInfo:
    """What `task.json` knows. Scores are those on the rows that were never learned from."""
    scores = ", ".join(f"{what} {value:.4g}" for what, value in said.get("metrics", {}).items() if value is not None)
    rows = said.get("rows", {})
    return ModelInfo(
        name=name,
        recipe=f"tuned from {said.get('source') or 'a network'} to {said['task_type']}" + (f"; {scores}" if scores else ""),
        corpus={f"rows {what}": int(number) for what, number in rows.items()},
    )
