"""Models of the library: `load` opens a folder as a `Model` or a `FineTunedModel`; `Run` is a pre-training run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from unmask.api.run import Run
from unmask.config.inference import CheckpointChoice
from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.core.io.atomic import write_text
from unmask.loading.open_model import LoadedNetwork, is_finetuned, open_model

if TYPE_CHECKING:
    from unmask.core.records import Floats
    from unmask.data.tokenize.tokenizer import Tokenizer
    from unmask.finetuning.artifact import FineTunedNetwork
    from unmask.finetuning.data.dataset import AnyExampleSet
    from unmask.finetuning.tasks.protocol import Prediction
    from unmask.inference.fill_mask import FilledText
    from unmask.interop.hf.parity_check import ParityReport
    from unmask.nets.model import EncoderWithHeads

TaskRow: TypeAlias = str | Sequence[str] | Mapping[str, object]
"""An input of a fine-tuned model: a text, a pair of texts, or the fields of a row as in the task file."""


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A pre-trained model with its tokenizer, in float32 and evaluation mode."""

    folder: Path
    loaded: LoadedNetwork

    @staticmethod
    def open(folder: Path | str, checkpoint: CheckpointChoice | str = CheckpointChoice.LAST) -> Model:
        """Open a run folder or a Hugging Face folder."""
        return Model(Path(folder), open_model(Path(folder), CheckpointChoice(checkpoint)))

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.loaded.name

    @property
    def network(self) -> EncoderWithHeads:
        """The torch module."""
        return self.loaded.model

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that the model was trained with."""
        return self.loaded.tokenizer

    def to(self, device: str) -> Model:
        """Move the weights to a device: "cpu", "cuda", "mps" or "auto"."""
        from unmask.train.run_config import pick_device

        for network in filter(None, (self.loaded.model, self.loaded.generator)):
            network.to(pick_device(device))
        return self

    @property
    def fills_with_generator(self) -> bool:
        """Whether masks are filled by the generator (ELECTRA), because the model has no language-model head."""
        return self.loaded.model.lm_head is None and self.loaded.generator is not None

    def fill_mask(self, text: str | Sequence[str], top_k: int = 5) -> list[FilledText]:
        """The `top_k` most probable tokens for each [MASK] of each text."""
        from unmask.inference.fill_mask import fill_masks, mask_filler

        texts = [text] if isinstance(text, str) else list(text)
        network = mask_filler(self.loaded.model, self.loaded.generator)
        return list(fill_masks(network, self.tokenizer, texts, top_k))

    def embed(
        self,
        texts: Iterable[str],
        *,
        pooling: Pooling | str = Pooling.MEAN,
        layer: int | None = None,
        normalize: bool = False,
        batch_size: int = 64,
    ) -> Floats:
        """One vector for each text: shape (texts, width), float32. `layer` None is the last one, 0 the embeddings."""
        import numpy as np

        from unmask.inference.embed import LayerPooling, embed

        depth = self.network.config.depth
        how = LayerPooling(depth if layer is None else layer, Pooling(pooling), normalize)
        blocks = list(embed(self.network, self.tokenizer, texts, how, batch_size))
        return np.concatenate(blocks) if blocks else np.zeros((0, self.network.config.width), np.float32)

    def generate(self, sources: Sequence[str], *, num_beams: int = 4, max_new_tokens: int = 64) -> list[str]:
        """Refused: a pre-trained encoder generates no text before it is fine-tuned for generation."""
        raise InputError(
            f"{self.folder} holds an encoder without a decoder, so it cannot generate text. Fine-tune it first: "
            'unmask.finetune(model, train="pairs.jsonl", task="generation", out="writer").'
        )

    def export(
        self, folder: Path | str, *, form: str = "whole", onnx: bool = False, normalize: bool = False
    ) -> ParityReport:
        """Write a folder that transformers loads, and compare the outputs of both libraries.

        `form` is one of: whole, pretraining, masked-lm, encoder, sentence, discriminator, generator.
        """
        from unmask.api.export import ExportForm, ExportOptions, export_model

        options = ExportOptions(form=ExportForm(form), onnx=onnx, normalize=normalize)
        return export_model(self, Path(folder), options).parity

    def predict(self, rows: Sequence[TaskRow]) -> list[Prediction]:
        """Refused: only a fine-tuned model predicts."""
        raise InputError(
            f"{self.folder} was not fine-tuned for a task. Fine-tune it first: unmask.finetune(model, ...)."
        )

    def score(self, file: Path | str) -> dict[str, float]:
        """Refused: only a fine-tuned model is scored on a task file."""
        raise InputError(
            f"{self.folder} was not fine-tuned for a task. Fine-tune it first: unmask.finetune(model, ...)."
        )


@dataclass(frozen=True, slots=True, eq=False)
class FineTunedModel(Model):
    """A model that was fine-tuned for a task, with its tokenizer. `loaded` is its encoder."""

    tuned: FineTunedNetwork
    base_folder: Path | None = None
    """The folder of the pre-trained model, if it was moved (LoRA, adapters, heads of a frozen encoder)."""

    @staticmethod
    def open_finetuned(folder: Path | str, base_folder: Path | str | None = None) -> FineTunedModel:
        """Open a folder that `finetune` wrote."""
        from unmask.config.model_type import ModelInfo
        from unmask.finetuning.export.hf import open_finetuned
        from unmask.finetuning.multitask.finetune import encoder_only

        base = None if base_folder is None else Path(base_folder)
        tuned, name = open_finetuned(Path(folder), base), Path(folder).resolve().name
        loaded = LoadedNetwork(encoder_only(tuned.learner), tuned.tokenizer, name, ModelInfo(name=name))
        return FineTunedModel(Path(folder), loaded, tuned, base)

    @property
    def metrics(self) -> dict[str, float | None]:
        """The scores on the dev rows at the end of the fine-tuning."""
        from unmask.finetuning.artifact import read_task

        return dict(read_task(self.folder)["metrics"])

    def to(self, device: str) -> FineTunedModel:
        """Move the weights to a device: "cpu", "cuda", "mps" or "auto"."""
        from unmask.train.run_config import pick_device

        self.tuned.learner.to(pick_device(device))
        return self

    def predict(self, rows: Sequence[TaskRow]) -> list[Prediction]:
        """A prediction for each text, pair of texts, or row with the fields of the task file."""
        return list(self.tuned.predict(self._examples(rows))) if rows else []

    def score(self, file: Path | str) -> dict[str, float]:
        """The scores on the rows of a file with labels."""
        from unmask.evaluation.by_task import scores
        from unmask.finetuning.task_data import read_examples

        examples = read_examples(Path(file), self.tuned.task.task_type, self.tuned.columns)
        self.tuned.task.check(examples)
        return dict(scores(self.tuned.task, examples, self.tuned.predict(examples)))

    def generate(self, sources: Sequence[str], *, num_beams: int = 4, max_new_tokens: int = 64) -> list[str]:
        """Generate a text for each source by beam search; refused for a task other than generation."""
        from unmask.config.inference import BeamSearch
        from unmask.finetuning.tasks.generation import GenerationTask

        task = self.tuned.task
        if not isinstance(task, GenerationTask):
            raise InputError(
                f"{self.folder} was fine-tuned for {task.task_type}, so it cannot generate text. Load a model that "
                'was fine-tuned with task="generation".'
            )
        beams = BeamSearch(num_beams=num_beams, max_new_tokens=max_new_tokens)
        writer = replace(self.tuned, task=replace(task, generation=replace(task.generation, beam_search=beams)))
        answers = replace(self, tuned=writer).predict(sources)
        return [str(answer.to_json()["prediction"]) for answer in answers]

    def export(
        self, folder: Path | str, *, form: str = "whole", onnx: bool = False, normalize: bool = False
    ) -> ParityReport:
        """Write a folder that transformers loads, and compare the outputs of both libraries."""
        from unmask.api.export import ExportForm, ExportOptions, export_finetuned_model

        options = ExportOptions(form=ExportForm(form), onnx=onnx, normalize=normalize)
        return export_finetuned_model(self.folder, Path(folder), options, self.base_folder).parity

    def _examples(self, rows: Sequence[TaskRow]) -> AnyExampleSet:
        """The rows as the reader of task files returns them."""
        from unmask.finetuning.task_data import read_examples

        columns = self.tuned.columns
        lines = (json.dumps(_fields(row, columns.texts), ensure_ascii=False) for row in rows)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.jsonl"
            write_text(path, "".join(f"{line}\n" for line in lines))
            return read_examples(path, self.tuned.task.task_type, columns, truths=False)


def _fields(row: TaskRow, names: Sequence[str]) -> Mapping[str, object]:
    """A row with the names of its columns."""
    if isinstance(row, Mapping):
        return row
    texts = [row] if isinstance(row, str) else list(row)
    known = list(names) or ["text"]
    if len(texts) != len(known):
        raise InputError(f"This task reads {len(known)} texts ({', '.join(known)}) per row, found {len(texts)}.")
    return dict(zip(known, texts, strict=True))


def load(folder: Path | str | Run, checkpoint: CheckpointChoice | str = CheckpointChoice.LAST) -> Model:
    """Open a run, a Hugging Face folder or a fine-tuned folder (a `FineTunedModel`); nothing is downloaded."""
    path = folder.folder if isinstance(folder, Run) else Path(folder)
    return FineTunedModel.open_finetuned(path) if is_finetuned(path) else Model.open(path, checkpoint)
