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
from unmask.config.network import read_network_config
from unmask.core.codec import decode
from unmask.core.codec import encode as encode_value
from unmask.core.errors import InputError, RecipeError, UserError
from unmask.core.io.atomic import atomic_file, digest_file, read_versioned_json, write_text, write_versioned_json
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.dataset import AnyExampleSet
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.delta_weights import attach_delta, base_digest, base_weights, trained_weights
from unmask.finetuning.methods.protocol import FullFineTuning, Method
from unmask.finetuning.tasks.protocol import Prediction, TaskDefinition
from unmask.loading.encoder_folder import MODEL_FILE, TOKENIZER_FILE
from unmask.loading.open_model import TASK_FILE
from unmask.nets.model import EncoderWithHeads
from unmask.train.multi_head_model import MultiHeadModel, load_weights

PREDICTIONS_FILE = "predictions.jsonl"


@dataclass(frozen=True, slots=True)
class BaseModelRef:
    """The network that was tuned: what it is called, where it lay, and a fingerprint of its weights."""

    name: str
    folder: str = ""
    digest: str = ""


BaseModelLoader: TypeAlias = Callable[[BaseModelRef], EncoderWithHeads]
"""Finds the network that was tuned, for what is saved without it."""


@dataclass(frozen=True, slots=True, eq=False)
class FineTunedNetwork:
    """A network that answers a task."""

    task: TaskDefinition
    columns: ColumnChoice
    """Where texts and truths stood in the task file."""
    max_length: int
    """The longest row, special tokens counted."""
    learner: MultiHeadModel
    tokenizer: Tokenizer
    method: Method = FullFineTuning()
    from_scratch: bool = False
    """Whether the trunk was drawn anew, so that it lies nowhere else."""

    @property
    def delta_only(self) -> bool:
        """Whether only what moved is saved, because the trunk lies where it came from."""
        return self.method.saves_delta_only and not self.from_scratch

    def encode(self, sheet: AnyExampleSet) -> EncodedDataset:
        """Questions as rows of tokens."""
        return self.task.encode(
            sheet, self.tokenizer, LengthLimits(self.max_length, self.learner.network.config.num_segments)
        )

    def predict(self, sheet: AnyExampleSet) -> Sequence[Prediction]:
        """What the network says to each question."""
        return self.task.predict(self.learner, sheet, self.encode(sheet))


def save_finetuned(tuned: FineTunedNetwork, folder: Path, root: BaseModelRef, facts: Mapping[str, object]) -> None:
    """Write the network and its tokenizer; last of all `task.json`, with any further facts.

    What is saved apart from its trunk needs that trunk again: a fingerprint of it is kept.
    """
    kept = trained_weights(tuned.learner, tuned.method) if tuned.delta_only else tuned.learner.named_weights()
    weights = {name: tensor.cpu().contiguous() for name, tensor in kept.items()}
    broken = [name for name, tensor in weights.items() if not tensor.isfinite().all()]
    if broken:
        raise UserError(f"The network holds numbers that are not finite, first in {broken[0]}. Take a lower --lr.")
    with atomic_file(folder / MODEL_FILE) as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER_FILE, tuned.tokenizer.pipeline.to_str(pretty=True))
    said = {**_describe(tuned), "base_model": asdict(root), **facts, "files": {MODEL_FILE: digest_file(folder / MODEL_FILE)}}
    write_versioned_json(folder / TASK_FILE, said)


def save_predictions(folder: Path, sheet: AnyExampleSet, answers: Sequence[Prediction]) -> None:
    """Write each question with its truth and what the network said."""
    lines = zip(sheet.examples, answers, strict=True)
    told = ({**question.to_json(), **answer.to_json()} for question, answer in lines)
    write_text(folder / PREDICTIONS_FILE, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in told))


def load_finetuned(folder: Path, load_base: BaseModelLoader) -> FineTunedNetwork:
    """Read a tuned network back: in float32, on the CPU, at rest. `find` brings a trunk that was saved apart."""
    folder = Path(folder)
    said = read_task(folder)
    try:
        output = decode(said["task"], TaskDefinition)  # type: ignore[type-abstract]
        policy = decode(said["method"], Method)  # type: ignore[type-abstract]
        choice = ColumnChoice(tuple(said["columns"]["texts"]), said["columns"]["label"])
        trunk = read_network_config(said["network"])
        learner = MultiHeadModel(trunk, (output.objective,), said["vocabulary"], said["positions"])
        length, digest, root = int(said["max_length"]), said["files"][MODEL_FILE], BaseModelRef(**said["base_model"])
        drawn, rests = bool(said["from_scratch"]), str(said["base_digest"])
    except (KeyError, TypeError, ValueError, RecipeError) as error:
        raise InputError(f"{folder / TASK_FILE} is not what unmask finetune writes ({error!r}). Tune again.") from error
    weights = _weights(folder / MODEL_FILE, digest)
    if rests:
        attach_delta(learner, policy, load_base(root), rests, str(folder))
        weights = {**base_weights(learner, policy), **weights}
    else:
        policy.add_modules(learner, 0)
    load_weights(learner, weights)
    return FineTunedNetwork(
        output, choice, length, learner.eval(), Tokenizer.load(folder / TOKENIZER_FILE), policy, drawn
    )


def read_task(folder: Path) -> dict[str, Any]:
    """What `task.json` says: the task, the scores and where the network comes from."""
    path = folder / TASK_FILE
    if not path.is_file():
        raise InputError(f"{folder} holds no tuned network: it has no {TASK_FILE}. Make one with: unmask finetune")
    return read_versioned_json(path, "Tune again.", InputError)


def nan_to_null(scores: Mapping[str, float]) -> dict[str, float | None]:
    """Scores for JSON, which has no word for what is not a number."""
    return {name: value if math.isfinite(value) else None for name, value in scores.items()}


def _describe(tuned: FineTunedNetwork) -> dict[str, object]:
    return {
        "unmask": __version__,
        "task_type": tuned.task.task_type.value,
        "task": encode_value(tuned.task),
        "method": encode_value(tuned.method),
        "from_scratch": tuned.from_scratch,
        "base_digest": base_digest(tuned.learner, tuned.method) if tuned.delta_only else "",
        "columns": asdict(tuned.columns),
        "max_length": tuned.max_length,
        "network": encode_value(tuned.learner.network.config),
        "vocabulary": tuned.learner.vocab_size,
        "positions": tuned.learner.max_positions,
        "tokenizer": tuned.tokenizer.digest,
    }


def _weights(path: Path, digest: str) -> dict[str, Any]:
    try:
        if digest_file(path) != digest:
            raise InputError(f"{path} is not what was written: its digest differs. Tune again.")
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}). Tune again.") from error
