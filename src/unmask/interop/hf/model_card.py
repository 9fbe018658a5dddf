"""The model card (`README.md`) of an export: facts, a usage snippet and the result of the parity check."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unmask.config.model_type import ModelInfo
from unmask.interop.extra_format import ExtraFormat
from unmask.interop.hf.config_json import NO_TASK, TaskConfig, read_config
from unmask.interop.hf.lookup import architecture_named, model_map
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.parity_check import ParityReport

_PIPELINE_TAGS = {
    HFTask.PRE_TRAINING: "fill-mask",
    HFTask.MASKED_LM: "fill-mask",
    HFTask.DISCRIMINATOR: "feature-extraction",
    HFTask.ENCODER: "feature-extraction",
    HFTask.CLASSIFIER: "text-classification",
    HFTask.TOKEN_CLASSIFICATION: "token-classification",
    HFTask.QUESTION_ANSWERING: "question-answering",
    HFTask.MULTIPLE_CHOICE: "multiple-choice",
}


def write_card(
    config: Mapping[str, Any],
    parameters: int,
    about: ModelInfo,
    proof: ParityReport,
    task: TaskConfig = NO_TASK,
    extras: Sequence[ExtraFormat] = (),
) -> str:
    """The text of the card, from the written `config.json` and the known facts."""
    architecture = architecture_named(config["architectures"][0])
    parts = (
        _head(architecture, extras),
        f"# {about.name or f'A network with the architecture of {model_map(architecture.model_type).name}'}",
        _shape(config, parameters),
        _training(about),
        _usage(architecture, task, extras),
        _reading(task),
        _checked(proof),
        "## Licence\n\nUnknown. Ask its authors, and mind the licence of the text it was trained on.",
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(architecture: Architecture, extras: Sequence[ExtraFormat]) -> str:
    metadata: dict[str, str] = {
        "library_name": "transformers",
        "pipeline_tag": _PIPELINE_TAGS[architecture.task],
        "license": "unknown",
    }
    for extra in extras:
        metadata |= extra.card_metadata()
    lines = (f"{name}: {value}" for name, value in metadata.items())
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
    """What is needed to reproduce the answers of a fine-tuned model."""
    rows = f"Rows have at most {task.max_length} tokens, as in training; `truncation=True` truncates there."
    notes = (*([rows] if task.max_length else []), *task.notes)
    return "\n".join(("## The same answers", "", *(f"- {note}" for note in notes))) if notes else ""


def _checked(proof: ParityReport) -> str:
    others = "".join(f" {other}." for other in proof.format_checks)
    return (
        "## Checked\n\n"
        f"Read by transformers {proof.version} and by unmask, {proof.num_rows} rows of {proof.num_tokens:,} tokens "
        f"give the same numbers: hidden states differ by at most {proof.max_hidden_difference:.1e}, outputs by "
        f"{proof.max_logits_difference:.1e}.{others}"
    )


def usage_lines(architecture: Architecture, task: TaskConfig) -> Iterator[str]:
    """Python code for a class, without unmask; `FOLDER` stands for the folder."""
    match architecture.task:
        case HFTask.CLASSIFIER:
            yield from _pipeline("text-classification", "truncation=True, top_k=None")
            yield 'print(answer("Some text."), answer({"text": "One text.", "text_pair": "Another one."}))'
        case HFTask.TOKEN_CLASSIFICATION:
            yield from _pipeline("token-classification", 'aggregation_strategy="first"')
            yield 'print(answer("Some text."))'
        case HFTask.MULTIPLE_CHOICE:
            yield from _loading(architecture, "import torch")
            yield from _multiple_choice_lines()
        case HFTask.QUESTION_ANSWERING:
            yield from _loading(architecture, "import torch")
            yield from _question_answering_lines(task)
        case HFTask.DISCRIMINATOR:
            yield from _loading(architecture, "import torch")
            yield from _replaced_token_lines()
        case _:
            yield from _loading(architecture)


def _pipeline(kind: str, settings: str) -> Iterator[str]:
    yield "from transformers import pipeline"
    yield ""
    yield f'answer = pipeline("{kind}", "FOLDER", {settings})'


def _loading(architecture: Architecture, *before: str) -> Iterator[str]:
    yield from before
    yield f"from transformers import AutoTokenizer, {architecture.name}"
    yield ""
    yield 'tokenizer = AutoTokenizer.from_pretrained("FOLDER")'
    yield f'model = {architecture.name}.from_pretrained("FOLDER")'


def _replaced_token_lines() -> Iterator[str]:
    """The probability that each token was replaced."""
    yield 'row = tokenizer("Some text.", return_tensors="pt")'
    yield "with torch.no_grad():"
    yield "    replaced = model(**row).logits[0].sigmoid()"
    yield 'print(list(zip(tokenizer.convert_ids_to_tokens(row["input_ids"][0]), replaced.tolist())))'


def _multiple_choice_lines() -> Iterator[str]:
    """One row per choice; a softmax over the choices."""
    yield 'question, choices = "Where do foxes sleep?", ["in a den", "on the moon"]'
    yield "# With a context, the first text is the context and the second is the question, a space and the choice."
    yield 'rows = tokenizer([question] * len(choices), choices, padding=True, truncation=True, return_tensors="pt")'
    yield "with torch.no_grad():"
    yield "    likely = model(**{name: rows[name][None] for name in rows}).logits[0].softmax(-1)"
    yield "print(choices[int(likely.argmax())], likely.tolist())"


def _question_answering_lines(task: TaskConfig) -> Iterator[str]:
    """The best legal span: inside the passage, in order, and not too long."""
    yield 'question, passage = "Who sleeps in a den?", "Foxes sleep in a den."'
    settings = 'truncation="only_second", return_offsets_mapping=True, return_tensors="pt"'
    yield f"row = tokenizer(question, passage, {settings})"
    yield 'places = row.pop("offset_mapping")[0].tolist()'
    yield "with torch.no_grad():"
    yield "    output = model(**row)"
    yield "scores = output.start_logits[0][:, None] + output.end_logits[0]"
    yield "inside = torch.tensor([part == 1 for part in row.sequence_ids(0)])"
    yield f"legal = (inside[:, None] & inside).triu().tril({task.max_answer_tokens - 1})"
    yield "first, last = divmod(int(scores.masked_fill(~legal, -torch.inf).argmax()), len(inside))"
    yield "found = passage[places[first][0] : places[last][1]]"
    if math.isfinite(task.threshold):
        yield f'found = "" if scores[0, 0] - scores[first, last] > {task.threshold!r} else found  # "": no answer'
    yield "print(found)"
