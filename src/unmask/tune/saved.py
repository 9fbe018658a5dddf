"""A tuned network as a folder, and back.

What arrives: a network that was tuned, and how it did. What leaves: a folder whose network says what this one says,
bit for bit.
What never happens here: pickle, or a folder that looks finished and is not. `task.json` is written last.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save

from unmask import __version__
from unmask.codec import decode
from unmask.codec import encode as encode_value
from unmask.errors import InputError, UserError
from unmask.nets.trunk import Trunk
from unmask.shards.files import digest_of, new_file, read_json, write_json, write_text
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.learner import Learner
from unmask.tune.encode import Encoded, Room, encode
from unmask.tune.fields import Fields
from unmask.tune.predict import Said, answer
from unmask.tune.row_task import Kind, RowTask
from unmask.tune.sheet import Sheet

TASK, MODEL, TOKENIZER, PREDICTIONS = "task.json", "model.safetensors", "tokenizer.json", "predictions.jsonl"


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """A network that answers a task."""

    task: RowTask
    fields: Fields
    """Where the texts and the label stood in the task file."""
    length: int
    """The longest row, special tokens counted."""
    learner: Learner
    tokenizer: Tokenizer

    def predict(self, rows: Sequence[Sequence[str]]) -> Said:
        """What the network says about rows of one text, or of two."""
        wrong = next((row for row in rows if len(row) != len(self.fields.texts) or isinstance(row, str)), ())
        if wrong:
            raise InputError(
                f"This network answers rows of {len(self.fields.texts)} texts ({', '.join(self.fields.texts)}); "
                f"found {str(wrong)[:60]!r}. Give each row as a tuple of its texts."
            )
        return answer(self.learner, self.task, self.encode(rows))

    def encode(self, rows: Sequence[Sequence[str]]) -> Encoded:
        """Rows of text as rows of tokens."""
        return encode(rows, self.tokenizer, Room(self.length, self.learner.trunk.trunk.segments))


def save_tuned(tuned: Tuned, folder: Path, judged: Sheet, said: Said, facts: Mapping[str, object]) -> None:
    """Write the network, its tokenizer and what it said; last of all `task.json`, with any further facts."""
    weights = {name: tensor.cpu().contiguous() for name, tensor in tuned.learner.weights().items()}
    broken = [name for name, tensor in weights.items() if not tensor.isfinite().all()]
    if broken:
        raise UserError(f"The network holds numbers that are not finite, first in {broken[0]}. Take a lower --rate.")
    with new_file(folder / MODEL) as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, tuned.tokenizer.pipeline.to_str(pretty=True))
    write_text(folder / PREDICTIONS, "".join(_line(*row) for row in _answers(judged, said)))
    write_json(folder / TASK, {**_describe(tuned), **facts, "files": {MODEL: digest_of(folder / MODEL)}})


def load_tuned(folder: Path) -> Tuned:
    """Read a tuned network back: in float32, on the CPU, at rest."""
    folder = Path(folder)
    said = read_task(folder)
    try:
        task = RowTask(Kind(said["kind"]), tuple(said["labels"]))
        fields = Fields(tuple(said["fields"]["texts"]), said["fields"]["label"])
        learner = Learner(decode(said["trunk"], Trunk), (task.objective,), said["vocabulary"], said["positions"])
        length, digest = int(said["length"]), said["files"][MODEL]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder / TASK} is not what unmask tune writes ({error!r}). Tune again.") from error
    learner.take_weights(_weights(folder / MODEL, digest))
    return Tuned(task, fields, length, learner.eval(), Tokenizer.load(folder / TOKENIZER))


def read_task(folder: Path) -> dict[str, Any]:
    """What `task.json` says: the task, the scores and where the network comes from."""
    path = folder / TASK
    if not path.is_file():
        raise InputError(f"{folder} holds no tuned network: it has no {TASK}. Make one with: unmask tune")
    return read_json(path, "Tune again.", InputError)


def finite(scores: Mapping[str, float]) -> dict[str, float | None]:
    """Scores for JSON, which has no word for what is not a number."""
    return {name: value if math.isfinite(value) else None for name, value in scores.items()}


def _describe(tuned: Tuned) -> dict[str, object]:
    return {
        "unmask": __version__,
        "kind": tuned.task.kind.value,
        "labels": list(tuned.task.labels),
        "fields": {"texts": list(tuned.fields.texts), "label": tuned.fields.label},
        "length": tuned.length,
        "trunk": encode_value(tuned.learner.trunk.trunk),
        "vocabulary": tuned.learner.vocabulary,
        "positions": tuned.learner.positions,
        "tokenizer": tuned.tokenizer.digest,
    }


def _weights(path: Path, digest: str) -> dict[str, Any]:
    try:
        if digest_of(path) != digest:
            raise InputError(f"{path} is not what was written: its digest differs. Tune again.")
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}). Tune again.") from error


def _answers(judged: Sheet, said: Said) -> list[tuple[tuple[str, ...], str, object, float]]:
    """Text, truth, answer and how sure the network was, row by row; of a number it is never sure."""
    sure = said.probabilities_NC.max(axis=1).tolist()
    return list(zip(judged.texts, judged.truths, said.answers, sure, strict=True))


def _line(texts: tuple[str, ...], truth: str, answer: object, sure: float) -> str:
    text = texts[0] if len(texts) == 1 else list(texts)
    if isinstance(answer, float):
        line: dict[str, object] = {"text": text, "label": float(truth), "said": round(answer, 6)}
    else:
        line = {"text": text, "label": truth, "said": answer, "probability": round(sure, 6)}
    return json.dumps(line, ensure_ascii=False) + "\n"
