"""The model card: the page that people read before they use a network.

What arrives: what is known about a network. What leaves: the text of `README.md`.
What never happens here: a claim. What is not known is not said, and no licence is made up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from unmask.interop.extra_format import ExtraFormat
from unmask.interop.hf.architecture import Architecture, HFTask
from unmask.interop.hf.config_json import read_config
from unmask.interop.hf.lookup import architecture_named, model_map
from unmask.interop.hf.parity_check import ParityReport
from unmask.interop.hf.task_config import NO_TASK, TaskConfig
from unmask.interop.hf.usage_snippet import usage_lines

_TASKS = {
    HFTask.PRE_TRAINING: "fill-mask",
    HFTask.MASKED_LM: "fill-mask",
    HFTask.DISCRIMINATOR: "feature-extraction",
    HFTask.ENCODER: "feature-extraction",
    HFTask.CLASSIFIER: "text-classification",
    HFTask.TOKEN_CLASSIFICATION: "token-classification",
    HFTask.QUESTION_ANSWERING: "question-answering",
    HFTask.MULTIPLE_CHOICE: "multiple-choice",
}


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known about a network. Empty fields are left out of the card."""

    name: str = ""
    recipe: str = ""
    """How it was trained, in a line or a paragraph."""
    paper: str = ""
    fingerprint: str = ""
    """Of the recipe."""
    corpus: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Counts of what it was trained on, such as documents and tokens."""


def write_card(
    config: Mapping[str, Any],
    parameters: int,
    about: ModelInfo,
    proof: ParityReport,
    task: TaskConfig = NO_TASK,
    extras: Sequence[ExtraFormat] = (),
) -> str:
    """The text of the card, from the settings that were written and from what is known."""
    architecture = architecture_named(config["architectures"][0])
    parts = (
        _head(architecture, extras),
        f"# {about.name or f'A network in the shape of {model_map(architecture.model_type).name}'}",
        _shape(config, parameters),
        _training(about),
        _usage(architecture, task, extras),
        _reading(task),
        _checked(proof),
        "## Licence\n\nUnknown. Ask whoever trained it, and mind the licence of the text it was trained on.",
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(architecture: Architecture, extras: Sequence[ExtraFormat]) -> str:
    said = {"library_name": "transformers", "pipeline_tag": _TASKS[architecture.task], "license": "unknown"}
    for extra in extras:
        said |= extra.card_metadata()
    lines = (f"{name}: {value}" for name, value in said.items())
    return "\n".join(("---", *lines, "tags:", f"- {architecture.model_type.value}", "- unmask", "---"))


def _shape(config: Mapping[str, Any], parameters: int) -> str:
    architecture, sizes = architecture_named(config["architectures"][0]), read_config(config)
    return (
        f"{architecture.article.capitalize()} `{architecture}` with {sizes.network.depth} layers, width "
        f"{sizes.network.width}, {sizes.network.heads} heads, {sizes.vocab_size:,} vocabulary entries, rows of up to "
        f"{sizes.max_positions} tokens and {parameters:,} parameters."
    )


def _training(about: ModelInfo) -> str:
    recipe = [about.recipe, about.paper, f"fingerprint `{about.fingerprint}`" if about.fingerprint else ""]
    lines = [f"- recipe: {', '.join(part for part in recipe if part)}"] if any(recipe) else []
    lines += [f"- {name}: {number:,}" for name, number in about.corpus.items()]
    return "\n".join(("## Training", "", *lines)) if lines else ""


def _usage(architecture: Architecture, task: TaskConfig, extras: Sequence[ExtraFormat]) -> str:
    every = (usage_lines(architecture, task), *(extra.usage(architecture) for extra in extras))
    blocks = ("\n".join(("```python", *lines, "```")) for lines in every)
    return "\n\n".join(("## Use", *blocks))


def _reading(task: TaskConfig) -> str:
    """What must be known to read the numbers as answers."""
    rows = (
        f"Rows have at most {task.max_length} tokens, as in training; the tokenizer cuts there when it is asked to cut."
    )
    notes = (*([rows] if task.max_length else []), *task.notes)
    return "\n".join(("## The same answers", "", *(f"- {note}" for note in notes))) if notes else ""


def _checked(proof: ParityReport) -> str:
    others = "".join(f" {other}." for other in proof.format_checks)
    return (
        "## Checked\n\n"
        f"Read by transformers {proof.version} and by unmask, {proof.num_rows} rows of {proof.num_tokens:,} tokens give the "
        f"same numbers: hidden states differ by at most {proof.max_hidden_difference:.1e}, outputs by {proof.max_logits_difference:.1e}.{others}"
    )
