"""A fine-tuned model as a folder: save and load, with all weights or as delta weights on a base model.

Methods that leave the base model unchanged (frozen, adapter, LoRA, norms) save only the trained weights, and a digest
of the base weights: loading refuses any other base model. `task.json` is written last, so an incomplete folder has
none.
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
from torch import Tensor

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
from unmask.finetuning.methods.protocol import FullFineTuning, Method, param_lrs
from unmask.finetuning.tasks.protocol import Prediction, TaskDefinition
from unmask.loading.encoder_folder import MODEL_FILE, TOKENIZER_FILE
from unmask.loading.open_model import TASK_FILE
from unmask.nets.model import EncoderWithHeads
from unmask.train.multi_head_model import MultiHeadModel, load_weights
from unmask.train.rundir.weights_digest import digest_of_weights

PREDICTIONS_FILE = "predictions.jsonl"


@dataclass(frozen=True, slots=True)
class BaseModelRef:
    """The base model of a fine-tuned model: name, folder, and digest of its weights."""

    name: str
    folder: str = ""
    digest: str = ""


BaseModelLoader: TypeAlias = Callable[[BaseModelRef], EncoderWithHeads]
"""Opens the base model of a folder with delta weights."""


@dataclass(frozen=True, slots=True, eq=False)
class FineTunedNetwork:
    """A model that was fine-tuned for a task."""

    task: TaskDefinition
    columns: ColumnChoice
    """The columns of the task file."""
    max_length: int
    """The longest row, with special tokens."""
    learner: MultiHeadModel
    tokenizer: Tokenizer
    method: Method = FullFineTuning()
    from_scratch: bool = False
    """Whether the encoder was trained from random weights, so that there is no base model."""

    @property
    def delta_only(self) -> bool:
        """Whether only the trained weights are saved."""
        return self.method.saves_delta_only and not self.from_scratch

    def encode(self, examples: AnyExampleSet) -> EncodedDataset:
        """Examples as rows of tokens."""
        return self.task.encode(
            examples, self.tokenizer, LengthLimits(self.max_length, self.learner.network.config.num_segments)
        )

    def predict(self, examples: AnyExampleSet) -> Sequence[Prediction]:
        """The prediction for each example."""
        return self.task.predict(self.learner, examples, self.encode(examples))


def save_finetuned(
    tuned: FineTunedNetwork, folder: Path, base_model: BaseModelRef, facts: Mapping[str, object]
) -> None:
    """Write weights and tokenizer, then `task.json` with any further facts."""
    saved = trained_weights(tuned.learner, tuned.method) if tuned.delta_only else tuned.learner.named_weights()
    weights = {name: tensor.cpu().contiguous() for name, tensor in saved.items()}
    broken = [name for name, tensor in weights.items() if not tensor.isfinite().all()]
    if broken:
        raise UserError(f"The weights are not finite, first in {broken[0]}. Use a lower --lr.")
    with atomic_file(folder / MODEL_FILE) as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER_FILE, tuned.tokenizer.pipeline.to_str(pretty=True))
    files = {MODEL_FILE: digest_file(folder / MODEL_FILE)}
    description = {**_describe(tuned), "base_model": asdict(base_model), **facts, "files": files}
    write_versioned_json(folder / TASK_FILE, description)


def save_predictions(folder: Path, examples: AnyExampleSet, predictions: Sequence[Prediction]) -> None:
    """Write `predictions.jsonl`: each example with its label and its prediction."""
    pairs = zip(examples.examples, predictions, strict=True)
    lines = ({**example.to_json(), **prediction.to_json()} for example, prediction in pairs)
    write_text(folder / PREDICTIONS_FILE, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def load_finetuned(folder: Path, load_base: BaseModelLoader) -> FineTunedNetwork:
    """Load a fine-tuned model: float32, on the CPU, in eval mode. `load_base` opens the base model of delta weights."""
    folder = Path(folder)
    saved = read_task(folder)
    try:
        task = decode(saved["task"], TaskDefinition)  # type: ignore[type-abstract]
        method = decode(saved["method"], Method)  # type: ignore[type-abstract]
        columns = ColumnChoice(tuple(saved["columns"]["texts"]), saved["columns"]["label"])
        config = read_network_config(saved["network"])
        learner = MultiHeadModel(config, (task.objective,), saved["vocab_size"], saved["max_positions"])
        max_length, digest = int(saved["max_length"]), saved["files"][MODEL_FILE]
        base_model, base = BaseModelRef(**saved["base_model"]), str(saved["base_digest"])
        from_scratch = bool(saved["from_scratch"])
    except (KeyError, TypeError, ValueError, RecipeError) as error:
        raise InputError(
            f"{folder / TASK_FILE} is not what unmask finetune writes ({error!r}). Fine-tune again."
        ) from error
    weights = _weights(folder / MODEL_FILE, digest)
    if base:
        attach_delta(learner, method, load_base(base_model), base, str(folder))
        weights = {**base_weights(learner, method), **weights}
    else:
        method.add_modules(learner, 0)
    load_weights(learner, weights)
    return FineTunedNetwork(
        task, columns, max_length, learner.eval(), Tokenizer.load(folder / TOKENIZER_FILE), method, from_scratch
    )


def read_task(folder: Path) -> dict[str, Any]:
    """The content of `task.json`: the task, its scores and the base model."""
    path = folder / TASK_FILE
    if not path.is_file():
        raise InputError(f"{folder} holds no fine-tuned model: it has no {TASK_FILE}. Make one with: unmask finetune")
    return read_versioned_json(path, "Fine-tune again.", InputError)


def nan_to_null(scores: Mapping[str, float]) -> dict[str, float | None]:
    """Scores for JSON, with null for NaN."""
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
        "vocab_size": tuned.learner.vocab_size,
        "max_positions": tuned.learner.max_positions,
        "tokenizer": tuned.tokenizer.digest,
    }


def _weights(path: Path, digest: str) -> dict[str, Any]:
    try:
        if digest_file(path) != digest:
            raise InputError(f"{path} is not what was written: its digest differs. Fine-tune again.")
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}). Fine-tune again.") from error


def trained_weights(learner: MultiHeadModel, method: Method) -> dict[str, Tensor]:
    """The weights that a method trains: the live tensors, not copies."""
    rates = param_lrs(method, learner)
    return {name: tensor for name, tensor in learner.named_weights().items() if rates(name).is_trained}


def base_weights(learner: MultiHeadModel, method: Method) -> dict[str, Tensor]:
    """The weights that a method leaves unchanged."""
    trained = trained_weights(learner, method)
    return {name: tensor for name, tensor in learner.named_weights().items() if name not in trained}


def base_digest(learner: MultiHeadModel, method: Method) -> str:
    """The digest of the weights that were not trained, by which a base model is recognized."""
    return digest_of_weights(base_weights(learner, method))


def attach_delta(learner: MultiHeadModel, method: Method, model: EncoderWithHeads, digest: str, what: str) -> None:
    """Copy the base model into a model and add the modules of the method; refuses another base model."""
    try:
        learner.network.load_state_dict(model.network.state_dict())
    except RuntimeError as error:
        raise _wrong_base_error(what) from error
    method.add_modules(learner, 0)
    if base_digest(learner, method) != digest:
        raise _wrong_base_error(what)


def _wrong_base_error(what: str) -> InputError:
    return InputError(
        f"{what} holds only the weights that were trained on top of a base model, and this is another model: the "
        "weights differ. Name the model that it was fine-tuned from with --base-model, or fine-tune this one."
    )
