"""How an exported network is used, as Python that can be pasted.

What arrives: the class of a folder and its task. What leaves: lines of code; `FOLDER` stands for the folder.
What never happens here: code that needs this package. Only `transformers` and torch are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from unmask.interop.hf.architecture import Architecture, HFTask
from unmask.interop.hf.task_config import TaskConfig


def usage_lines(architecture: Architecture, task: TaskConfig) -> Iterator[str]:
    """The lines for a class."""
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
    """The chance that each token was replaced."""
    yield 'row = tokenizer("Some text.", return_tensors="pt")'
    yield "with torch.no_grad():"
    yield "    replaced = model(**row).logits[0].sigmoid()"
    yield 'print(list(zip(tokenizer.convert_ids_to_tokens(row["input_ids"][0]), replaced.tolist())))'


def _multiple_choice_lines() -> Iterator[str]:
    """One row for each choice; a softmax over the choices."""
    yield 'question, choices = "Where do foxes sleep?", ["in a den", "on the moon"]'
    yield "# With a context, the first text is the context and the second is the question, a space and the choice."
    yield 'rows = tokenizer([question] * len(choices), choices, padding=True, truncation=True, return_tensors="pt")'
    yield "with torch.no_grad():"
    yield "    likely = model(**{name: rows[name][None] for name in rows}).logits[0].softmax(-1)"
    yield "print(choices[int(likely.argmax())], likely.tolist())"


def _question_answering_lines(task: TaskConfig) -> Iterator[str]:
    """The best legal span: inside the passage, forwards, and not too long."""
    yield 'question, passage = "Who sleeps in a den?", "Foxes sleep in a den."'
    settings = 'truncation="only_second", return_offsets_mapping=True, return_tensors="pt"'
    yield f"row = tokenizer(question, passage, {settings})"
    yield 'places = row.pop("offset_mapping")[0].tolist()'
    yield "with torch.no_grad():"
    yield "    said = model(**row)"
    yield "scores = said.start_logits[0][:, None] + said.end_logits[0]"
    yield "inside = torch.tensor([part == 1 for part in row.sequence_ids(0)])"
    yield f"legal = (inside[:, None] & inside).triu().tril({task.max_answer_tokens - 1})"
    yield "first, last = divmod(int(scores.masked_fill(~legal, -torch.inf).argmax()), len(inside))"
    yield "found = passage[places[first][0] : places[last][1]]"
    if math.isfinite(task.threshold):
        yield f'found = "" if scores[0, 0] - scores[first, last] > {task.threshold!r} else found  # "": no answer'
    yield "print(found)"
