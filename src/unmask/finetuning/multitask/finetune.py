"""Several tasks tuned together on one trunk: MT-DNN (Liu et al., 2019).

What arrives: a network with its tokenizer, tasks and settings. What leaves: one learner with a head for each task,
through the one loop.
What never happens here: a loop of its own, or a look at what a task asks. Any output can stand beside any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.finetune import FineTuneSettings, model_digest
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.methods.protocol import FullFineTuning
from unmask.finetuning.multitask.schedule import MultiTaskBatches, TaskOrder, WeightedObjective
from unmask.finetuning.multitask.task_file import TaskEntry
from unmask.finetuning.tasks.protocol import TaskDefinition
from unmask.nets.model import EncoderWithHeads
from unmask.train.loop import train
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.rundir.metrics_log import Listener
from unmask.train.schedule import StepBudget
from unmask.train.training_spec import TrainingSpec


class OptimizerName(StrEnum):
    """What moves the weights."""

    ADAMW = "adamw"
    """As in all tuning here, so that one task and many can be compared."""
    ADAMAX = "adamax"
    """As in MT-DNN's paper."""


@dataclass(frozen=True, slots=True, eq=False)
class MultiTaskFineTune:
    """Tune a network for several tasks at once."""

    tasks: tuple[TaskEntry, ...]
    model: EncoderWithHeads
    tokenizer: Tokenizer
    settings: FineTuneSettings
    source: str
    """What the network is called where it comes from."""
    task_order: TaskOrder = TaskOrder.MIXED
    optimizer: OptimizerName = OptimizerName.ADAMW
    heads: Mapping[str, Tensor] = field(default_factory=dict)
    """Weights of heads that have learned before, by name; other heads are drawn."""

    def __post_init__(self) -> None:
        for task in self.tasks:
            if hasattr(nn.ModuleDict(), task.name):
                raise InputError(f"A task cannot be called {task.name!r}: torch needs that name. Add a digit to it.")

    def describe(self) -> dict[str, Any]:
        """Everything that decides what is learned: two calls that differ in it are two runs."""
        source = {"name": self.source, "weights": model_digest(self.model), "tokenizer": self.tokenizer.digest}
        return {
            "unmask": __version__,
            "kind": "multitask",
            "source": source | {"heads": _digest(self.heads)},
            "tasks": {task.name: _describe_task(task) for task in self.tasks},
            "order": self.task_order.value,
            "optimiser": self.optimizer.value,
            "settings": asdict(self.settings),
        }

    def encode(self, tick: Callable[[int], None] = lambda done: None) -> MultiTaskBatches:
        """Encode all questions of all tasks. `tick` hears of questions done."""
        return MultiTaskBatches(tuple(self._parts(tick)), self.settings.epochs, self.task_order, self.settings.seed)

    def _parts(self, tick: Callable[[int], None]) -> Iterator[EpochBatches]:
        how, done = self.settings, 0
        for task in self.tasks:
            job = task.data
            learned = self._encode_examples(job.task, job.train, done, tick)
            judged = self._encode_examples(job.task, job.dev, done + len(job.train), tick)
            done += len(job.train) + len(job.dev)
            objective = WeightedObjective(job.task.objective, task.weight)
            yield EpochBatches(learned, judged, objective, how.batch_size, how.max_length, how.seed, task.name)

    def _encode_examples(
        self, output: TaskDefinition, sheet: AnyExampleSet, before: int, tick: Callable[[int], None]
    ) -> EncodedDataset:
        room = LengthLimits(self.settings.max_length, self.model.config.num_segments)
        return output.encode(sheet, self.tokenizer, room, lambda done: tick(before + done))

    def train(
        self,
        course: MultiTaskBatches,
        run: RunConfig,
        processes: DistContext,
        folder: Path,
        listeners: Sequence[Listener] = (),
    ) -> MultiHeadModel:
        """Train, going on from the last checkpoint in the folder if there is one."""
        training = TrainingSpec(
            model=self._build_model(course),
            source=course,
            optim=self.optim_config,
            budget=StepBudget(course.num_steps),
            seed=self.settings.seed,
        )
        train(training, run, processes, folder, listeners)
        return training.model.eval()

    @property
    def optim_config(self) -> OptimConfig:
        """As for one task; only the optimiser may be another."""
        usual = self.settings.optim_config(FullFineTuning())
        return usual if self.optimizer is OptimizerName.ADAMW else replace(usual, optimizer=Adamax(self.settings.lr))

    @torch.no_grad()
    def _build_model(self, course: MultiTaskBatches) -> MultiHeadModel:
        """A learner with a head for each task; heads that have learned before go on from there."""
        learner = build_model(self.model, course.objectives, self.settings.seed, self.settings.start)
        for name, parameter in learner.named_parameters():
            if name in self.heads:
                parameter.copy_(self.heads[name])
        return learner

    def finetuned_task(self, learner: MultiHeadModel, task: TaskEntry) -> FineTunedNetwork:
        """One task's share of a learner: the trunk, and its own head."""
        output, trunk = task.data.task, learner.network
        with torch.device("meta"):  # only the frame is needed, all weights are there already
            alone = MultiHeadModel(trunk.config, (output.objective,), learner.vocab_size, learner.max_positions)
        alone.network, alone.heads = trunk, nn.ModuleDict({task.name: learner.heads[task.name]})
        return FineTunedNetwork(output, task.data.columns, self.settings.max_length, alone.eval(), self.tokenizer)

    def continue_with(self, task: TaskEntry, tuned: FineTunedNetwork, epochs: float) -> MultiTaskFineTune:
        """Go on with one task alone, from the trunk and the head that have learned with the others."""
        learner = tuned.learner
        heads = {name: tensor for name, tensor in learner.named_weights().items() if name.startswith("heads.")}
        how = replace(self.settings, epochs=epochs, start=StartFrom.PRETRAINED)
        return replace(self, tasks=(task,), model=encoder_only(learner), settings=how, heads=heads)


def encoder_only(learner: MultiHeadModel) -> EncoderWithHeads:
    """The trunk of a learner as a network without heads; the weights are shared, not copied."""
    with torch.device("meta"):
        model = EncoderWithHeads(
            learner.network.config, learner.vocab_size, learner.max_positions, has_lm_head=False, has_row_head=False
        )
    model.network = learner.network
    return model


def _describe_task(task: TaskEntry) -> dict[str, object]:
    job = task.data
    files = [list(file) for file in job.files]
    return {"weight": task.weight, "task": encode(job.task), "columns": asdict(job.columns), "files": files}


def _digest(weights: Mapping[str, Tensor]) -> str:
    """A fingerprint of some weights; nothing for none."""
    state = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(weights.items()):
        state.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return state.hexdigest() if weights else ""
