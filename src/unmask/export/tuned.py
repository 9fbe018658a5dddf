"""A network that was tuned for a task, as a folder that `transformers` loads.

What arrives: a folder of `unmask tune`. What leaves: a `BertForSequenceClassification` with the names of its classes.
What never happens here: another answer. The proof compares the answers to the task themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unmask.export.bert import Architecture
from unmask.export.card import About
from unmask.export.proof import SENTENCES, Proof
from unmask.export.write import export
from unmask.nets.model import Model
from unmask.tune.saved import Tuned, load_tuned, read_task
from unmask.tune.start import row_head


def export_tuned(source: Path, folder: Path, lines: Sequence[str] = SENTENCES) -> Proof:
    """Write a tuned network, its labels among the settings, and keep it only if both libraries answer alike."""
    tuned = load_tuned(source)
    about = _about(source.resolve().name, read_task(source))
    model, labels = model_of_tuned(tuned), tuned.task.labels
    return export(model, tuned.tokenizer, folder, Architecture.CLASSIFIER, about, lines, labels)


def model_of_tuned(tuned: Tuned) -> Model:
    """The trunk with the head for rows that answers the task; the weights are shared, not copied."""
    learner = tuned.learner
    model = Model(learner.trunk.trunk, learner.vocabulary, learner.positions, tokens=False, row=False)
    model.trunk, model.row = learner.trunk, row_head(learner, tuned.task)
    return model.eval()


def _about(name: str, said: Mapping[str, Any]) -> About:
    """What `task.json` knows. Scores are those on the rows that were never learned from."""
    scores = ", ".join(f"{what} {value:.4g}" for what, value in said.get("metrics", {}).items() if value is not None)
    rows = said.get("rows", {})
    return About(
        name=name,
        recipe=f"tuned from {said.get('source') or 'a network'} to {said['kind']}" + (f"; {scores}" if scores else ""),
        corpus={f"rows {what}": int(number) for what, number in rows.items()},
    )
