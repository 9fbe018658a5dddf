"""A network that was tuned for a task, as a folder that `transformers` loads.

What arrives: a folder of `unmask tune`. What leaves: one of the classes for tasks, with the names of its labels.
What never happens here: another answer. The proof compares the answers to the task themselves, and a network whose
answers these classes cannot give is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unmask.errors import InputError
from unmask.export.architecture import Architecture
from unmask.export.card import About
from unmask.export.dialects import dialect_for
from unmask.export.extra import Extra
from unmask.export.proof import SENTENCES, Proof
from unmask.export.source import dialect_in, open_source
from unmask.export.tuned_class import class_of, model_of_tuned
from unmask.export.write import export
from unmask.nets.model import Model
from unmask.tune.saved import Root, Tuned, load_tuned, read_task


def export_tuned(
    source: Path,
    folder: Path,
    lines: Sequence[str] = SENTENCES,
    extras: Sequence[Extra] = (),
    network: Path | None = None,
) -> tuple[Architecture, Proof]:
    """Write a tuned network, its labels among the settings, and keep it only if both libraries answer alike."""
    tuned = open_tuned(source, network)
    said = dialect_in(network or source / read_task(source)["root"]["folder"])
    architecture, task = class_of(tuned, dialect_for(tuned.learner.trunk.trunk, said))
    model = model_of_tuned(tuned)
    about = _about(source.resolve().name, read_task(source))
    task = replace(task, length=tuned.length)
    return architecture, export(model, tuned.tokenizer, folder, architecture, about, lines, task, extras)


def open_tuned(folder: Path, network: Path | None = None) -> Tuned:
    """A tuned network, on its trunk; a trunk that was saved apart is looked for where it lay, or in `network`."""

    def find(root: Root) -> Model:
        lay = network or folder / root.folder
        if not lay.is_dir():
            raise InputError(
                f"{folder} holds only what was learned on top of a network, which should lie in {lay} and is not "
                "there. Put it back, or name where it lies now with --network."
            )
        return open_source(lay).model

    return load_tuned(folder, find)


def _about(name: str, said: Mapping[str, Any]) -> About:
    """What `task.json` knows. Scores are those on the rows that were never learned from."""
    scores = ", ".join(f"{what} {value:.4g}" for what, value in said.get("metrics", {}).items() if value is not None)
    rows = said.get("rows", {})
    return About(
        name=name,
        recipe=f"tuned from {said.get('source') or 'a network'} to {said['kind']}" + (f"; {scores}" if scores else ""),
        corpus={f"rows {what}": int(number) for what, number in rows.items()},
    )
