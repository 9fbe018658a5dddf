"""Multi-task fine-tuning: one shared encoder with a head per task (MT-DNN, Liu et al., 2019)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unmask import __version__
from unmask.config.optim import Adamax, OptimConfig
from unmask.core.codec import encode
from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.artifact import FineTunedNetwork
from unmask.finetuning.data.dataset import AnyExampleSet
from unmask.finetuning.data.encode import LengthLimits, Ticker, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.finetune import FineTuneSettings, model_digest
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.methods.protocol import FullFineTuning
from unmask.finetuning.multitask.schedule import MultiTaskBatches, TaskOrder, WeightedObjective
from unmask.finetuning.multitask.task_file import TaskEntry
from unmask.finetuning.tasks.protocol import TaskDefinition
from unmask.nets.model import EncoderWithHeads
from unmask.train.build_step import TrainingSpec
from unmask.train.loop import train
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.rundir.run_writer import Listener
from unmask.train.schedule import StepBudget


class OptimizerName(StrEnum):
    """The optimizer."""

    ADAMW = "adamw"
    """As in single-task fine-tuning."""
    ADAMAX = "adamax"
    """As in MT-DNN's paper."""


@dataclass(frozen=True, slots=True, eq=False)
class MultiTaskFineTune:
    """One multi-task fine-tuning run."""

    tasks: tuple[TaskEntry, ...]
    model: EncoderWithHeads
    tokenizer: Tokenizer
    settings: FineTuneSettings
    source: str
    """The name of the base model."""
    task_order: TaskOrder = TaskOrder.MIXED
    optimizer: OptimizerName = OptimizerName.ADAMW
    heads: Mapping[str, Tensor] = field(default_factory=dict)
    """Weights of trained heads by name; other heads are initialized."""

    def __post_init__(self) -> None:
        for task in self.tasks:
            if hasattr(nn.ModuleDict(), task.name):
                raise InputError(f"A task cannot be called {task.name!r}: torch needs that name. Add a digit to it.")

    def describe(self) -> dict[str, Any]:
        """Everything that determines the result; two runs with different descriptions are different runs."""
        source = {"name": self.source, "weights": model_digest(self.model), "tokenizer": self.tokenizer.digest}
        return {
            "unmask": __version__,
            "kind": "multitask",
            "source": source | {"heads": _digest(self.heads)},
            "tasks": {task.name: _describe_task(task) for task in self.tasks},
            "order": self.task_order.value,
            "optimizer": self.optimizer.value,
            "settings": asdict(self.settings),
        }

    def encode(self, tick: Ticker = ignore_progress) -> MultiTaskBatches:
        """Encode all examples of all tasks; `tick` receives the number of encoded examples."""
        return MultiTaskBatches(tuple(self._parts(tick)), self.settings.epochs, self.task_order, self.settings.seed)

    def _parts(self, tick: Ticker) -> Iterator[EpochBatches]:
        how, done = self.settings, 0
        for task in self.tasks:
            data = task.data
            train = self._encode_examples(data.task, data.train, done, tick)
            dev = self._encode_examples(data.task, data.dev, done + len(data.train), tick)
            done += len(data.train) + len(data.dev)
            objective = WeightedObjective(data.task.objective, task.weight)
            yield EpochBatches(train, dev, objective, how.batch_size, how.max_length, how.seed, task.name)

    def _encode_examples(
        self, task: TaskDefinition, examples: AnyExampleSet, before: int, tick: Ticker
    ) -> EncodedDataset:
        limits = LengthLimits(self.settings.max_length, self.model.config.num_segments)
        return task.encode(examples, self.tokenizer, limits, lambda done: tick(before + done))

    def train(
        self,
        batches: MultiTaskBatches,
        run: RunConfig,
        processes: DistContext,
        folder: Path,
        listeners: Sequence[Listener] = (),
    ) -> MultiHeadModel:
        """Train, resuming from the last checkpoint in the folder."""
        training = TrainingSpec(
            model=self.build_model(batches),
            source=batches,
            optim=self.optim_config,
            budget=StepBudget(batches.num_steps),
            seed=self.settings.seed,
        )
        train(training, run, processes, folder, listeners)
        return training.model.eval()

    @property
    def optim_config(self) -> OptimConfig:
        """That of single-task fine-tuning, possibly with Adamax."""
        usual = self.settings.optim_config(FullFineTuning())
        return usual if self.optimizer is OptimizerName.ADAMW else replace(usual, optimizer=Adamax(self.settings.lr))

    @torch.no_grad()
    def build_model(self, batches: MultiTaskBatches) -> MultiHeadModel:
        """The initial model with a head for each task; trained heads keep their weights."""
        learner = build_model(self.model, batches.objectives, self.settings.seed, self.settings.start)
        for name, parameter in learner.named_parameters():
            if name in self.heads:
                parameter.copy_(self.heads[name])
        return learner

    def finetuned_task(self, learner: MultiHeadModel, task: TaskEntry) -> FineTunedNetwork:
        """The fine-tuned model of one task: the shared encoder and its own head."""
        definition, encoder = task.data.task, learner.network
        with torch.device("meta"):  # modules without weights, which are assigned below
            alone = MultiHeadModel(encoder.config, (definition.objective,), learner.vocab_size, learner.max_positions)
        alone.network, alone.heads = encoder, nn.ModuleDict({task.name: learner.heads[task.name]})
        return FineTunedNetwork(definition, task.data.columns, self.settings.max_length, alone.eval(), self.tokenizer)

    def continue_with(self, task: TaskEntry, tuned: FineTunedNetwork, epochs: float) -> MultiTaskFineTune:
        """Fine-tune one task alone, starting from the shared encoder and its head."""
        learner = tuned.learner
        heads = {name: tensor for name, tensor in learner.named_weights().items() if name.startswith("heads.")}
        how = replace(self.settings, epochs=epochs, start=StartFrom.PRETRAINED)
        return replace(self, tasks=(task,), model=encoder_only(learner), settings=how, heads=heads)


def encoder_only(learner: MultiHeadModel) -> EncoderWithHeads:
    """The encoder as a model without heads; weights are shared, not copied."""
    with torch.device("meta"):
        model = EncoderWithHeads(
            learner.network.config, learner.vocab_size, learner.max_positions, has_lm_head=False, has_row_head=False
        )
    model.network = learner.network
    return model


def _describe_task(task: TaskEntry) -> dict[str, object]:
    data = task.data
    files = [list(file) for file in data.files]
    return {"weight": task.weight, "task": encode(data.task), "columns": asdict(data.columns), "files": files}


def _digest(weights: Mapping[str, Tensor]) -> str:
    """The digest of some weights; empty for none."""
    state = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(weights.items()):
        state.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return state.hexdigest() if weights else ""
