"""A tuned network as a folder, and back.

What arrives: a network that was tuned, and how it did. What leaves: a folder whose network says what this one says,
bit for bit.
What never happens here: pickle, or a folder that looks finished and is not. `task.json` is written last.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from safetensors import SafetensorError
from safetensors.torch import load_file, save

from unmask import __version__
from unmask.codec import decode
from unmask.codec import encode as encode_value
from unmask.errors import InputError, RecipeError, UserError
from unmask.nets.model import Model
from unmask.nets.trunk import read_trunk
from unmask.shards.files import digest_of, new_file, read_json, write_json, write_text
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.learner import Learner, take_weights
from unmask.tune.apart import digest_at_rest, moving, put_on, resting
from unmask.tune.encode import Room
from unmask.tune.exercise import Exercise
from unmask.tune.fields import Choice
from unmask.tune.output import Answer, Output
from unmask.tune.policy import Full, Policy
from unmask.tune.sheet import AnySheet

TASK, MODEL, TOKENIZER, PREDICTIONS = "task.json", "model.safetensors", "tokenizer.json", "predictions.jsonl"


@dataclass(frozen=True, slots=True)
class Root:
    """The network that was tuned: what it is called, where it lay, and a fingerprint of its weights."""

    name: str
    folder: str = ""
    weights: str = ""


Opener: TypeAlias = Callable[[Root], Model]
"""Finds the network that was tuned, for what is saved without it."""


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """A network that answers a task."""

    output: Output
    choice: Choice
    """Where texts and truths stood in the task file."""
    length: int
    """The longest row, special tokens counted."""
    learner: Learner
    tokenizer: Tokenizer
    policy: Policy = Full()
    drawn: bool = False
    """Whether the trunk was drawn anew, so that it lies nowhere else."""

    @property
    def apart(self) -> bool:
        """Whether only what moved is saved, because the trunk lies where it came from."""
        return self.policy.apart and not self.drawn

    def lay_out(self, sheet: AnySheet) -> Exercise:
        """Questions as rows of tokens."""
        return self.output.lay_out(sheet, self.tokenizer, Room(self.length, self.learner.trunk.trunk.segments))

    def answer(self, sheet: AnySheet) -> Sequence[Answer]:
        """What the network says to each question."""
        return self.output.answer(self.learner, sheet, self.lay_out(sheet))


def save_tuned(tuned: Tuned, folder: Path, root: Root, facts: Mapping[str, object]) -> None:
    """Write the network and its tokenizer; last of all `task.json`, with any further facts.

    What is saved apart from its trunk needs that trunk again: a fingerprint of it is kept.
    """
    kept = moving(tuned.learner, tuned.policy) if tuned.apart else tuned.learner.weights()
    weights = {name: tensor.cpu().contiguous() for name, tensor in kept.items()}
    broken = [name for name, tensor in weights.items() if not tensor.isfinite().all()]
    if broken:
        raise UserError(f"The network holds numbers that are not finite, first in {broken[0]}. Take a lower --rate.")
    with new_file(folder / MODEL) as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, tuned.tokenizer.pipeline.to_str(pretty=True))
    said = {**_describe(tuned), "root": asdict(root), **facts, "files": {MODEL: digest_of(folder / MODEL)}}
    write_json(folder / TASK, said)


def save_answers(folder: Path, sheet: AnySheet, answers: Sequence[Answer]) -> None:
    """Write each question with its truth and what the network said."""
    lines = zip(sheet.questions, answers, strict=True)
    told = ({**question.line(), **answer.line()} for question, answer in lines)
    write_text(folder / PREDICTIONS, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in told))


def load_tuned(folder: Path, find: Opener) -> Tuned:
    """Read a tuned network back: in float32, on the CPU, at rest. `find` brings a trunk that was saved apart."""
    folder = Path(folder)
    said = read_task(folder)
    try:
        output = decode(said["output"], Output)  # type: ignore[type-abstract]
        policy = decode(said["policy"], Policy)  # type: ignore[type-abstract]
        choice = Choice(tuple(said["choice"]["texts"]), said["choice"]["label"])
        trunk = read_trunk(said["trunk"])
        learner = Learner(trunk, (output.objective,), said["vocabulary"], said["positions"])
        length, digest, root = int(said["length"]), said["files"][MODEL], Root(**said["root"])
        drawn, rests = bool(said["drawn"]), str(said["rests"])
    except (KeyError, TypeError, ValueError, RecipeError) as error:
        raise InputError(f"{folder / TASK} is not what unmask tune writes ({error!r}). Tune again.") from error
    weights = _weights(folder / MODEL, digest)
    if rests:
        put_on(learner, policy, find(root), rests, str(folder))
        weights = {**resting(learner, policy), **weights}
    else:
        policy.equip(learner, 0)
    take_weights(learner, weights)
    return Tuned(output, choice, length, learner.eval(), Tokenizer.load(folder / TOKENIZER), policy, drawn)


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
        "kind": tuned.output.kind.value,
        "output": encode_value(tuned.output),
        "policy": encode_value(tuned.policy),
        "drawn": tuned.drawn,
        "rests": digest_at_rest(tuned.learner, tuned.policy) if tuned.apart else "",
        "choice": asdict(tuned.choice),
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
