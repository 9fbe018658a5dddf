"""A fine-tune: an output and a policy meet a network.

What arrives: a network with its tokenizer, a job, a policy and settings. What leaves: a `Tuned`, through the one loop.
What never happens here: a loop of its own, a word to the user, or a look at what output or policy it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unmask import __version__
from unmask.config.optim import AdamW, OptimConfig
from unmask.core.codec import encode
from unmask.core.errors import InputError
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.finetuning.artifact import FineTunedNetwork
from unmask.finetuning.auxiliary_lm import WithAuxiliaryLM, check_auxiliary_lm, remove_head
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.feature_cache import with_feature_cache
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.methods.protocol import FullFineTuning, Method, param_lrs
from unmask.finetuning.task_data import TaskData
from unmask.finetuning.tasks.protocol import Ticker, ignore_progress
from unmask.nets.model import EncoderWithHeads
from unmask.objectives.mlm import MLM
from unmask.train.loop import train
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.rundir.metrics_log import Listener
from unmask.train.rundir.weights_digest import digest_of_weights
from unmask.train.schedule import StepBudget
from unmask.train.training_spec import TrainingSpec

DEFAULT_MAX_LENGTH = 128
"""The longest row, unless something else is said or the network has room for less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneSettings:
    """How a network is tuned. The defaults lie in the ranges that BERT's paper searched (Devlin et al., 2018, A.3)."""

    epochs: float = 3.0
    lr: float = FullFineTuning.default_lr
    batch_size: int = 32
    max_length: int = DEFAULT_MAX_LENGTH
    seed: int = 0
    start: StartFrom = StartFrom.PRETRAINED
    lm_weight: float = 0.0
    """What the loss of a language model on the texts of the task counts beside that of the task; 0 for none."""

    def __post_init__(self) -> None:
        numbers = {"--epochs": self.epochs, "--lr": self.lr, "--batch-size": self.batch_size, "--max-length": self.max_length}
        for name, number in numbers.items():
            if not 0 < number < math.inf:
                raise InputError(f"Tuning needs a positive number for {name}, found {number}.")
        if not 0 <= self.lm_weight < math.inf:
            raise InputError(f"Tuning needs a number of at least 0 for --lm-weight, found {self.lm_weight}.")

    def optim_config(self, policy: Method) -> OptimConfig:
        """AdamW with bias correction, gradients of at most 1, and the schedule of the policy.

        BERT's code leaves the bias correction out. On small tasks that makes some runs fail (Zhang et al., 2021;
        Mosbach et al., 2021), so it is in here.
        """
        return OptimConfig(AdamW(self.lr, bias_correction=True), policy.schedule, max_grad_norm=1.0)

    @property
    def auxiliary_objectives(self) -> tuple[MLM, ...]:
        """What is learned beside the task."""
        return (MLM(self.lm_weight),) if self.lm_weight else ()


def choose_max_length(model: EncoderWithHeads, requested: int | None, default: int = DEFAULT_MAX_LENGTH) -> int:
    """The longest row: what was wished for, or what is usual, or as many positions as the network has."""
    most = model.max_positions or (requested or default)
    if requested is not None and requested > most:
        raise InputError(f"--max-length {requested}: the network has {most} positions only. Use --max-length {most} or less.")
    return min(requested or default, most)


@dataclass(frozen=True, slots=True, eq=False)
class FineTune:
    """Tune a network for a task."""

    data: TaskData
    model: EncoderWithHeads
    tokenizer: Tokenizer
    settings: FineTuneSettings
    source: str
    """What the network is called where it comes from."""
    method: Method = FullFineTuning()

    def __post_init__(self) -> None:
        self.method.check(self.model.config)
        if self.settings.lm_weight:
            check_auxiliary_lm(self.model, self.method)

    def describe(self) -> dict[str, Any]:
        """Everything that decides what is learned: two calls that differ in it are two runs."""
        return {
            "unmask": __version__,
            "kind": "finetune",
            "source": {"name": self.source, "weights": model_digest(self.model), "tokenizer": self.tokenizer.digest},
            "task": encode(self.data.task),
            "columns": asdict(self.data.columns),
            "method": encode(self.method),
            "files": [list(file) for file in self.data.files],
            "settings": {**asdict(self.settings), "dropout": self.model.config.dropout},
        }

    def encode(self, tick: Callable[[int], None] = lambda done: None) -> EpochBatches:
        """Encode all questions and put them in the order in which they are learned. `tick` hears of questions done."""
        job, how = self.data, self.settings
        room = LengthLimits(how.max_length, self.model.config.num_segments)
        learned = job.task.encode(job.train, self.tokenizer, room, tick)
        judged = job.task.encode(job.dev, self.tokenizer, room, lambda done: tick(len(job.train) + done))
        return EpochBatches(learned, judged, job.task.objective, how.batch_size, how.max_length, how.seed)

    def train(
        self,
        course: EpochBatches,
        run: RunConfig,
        processes: DistContext,
        folder: Path,
        listeners: Sequence[Listener] = (),
        tick: Ticker = ignore_progress,
    ) -> FineTunedNetwork:
        """Train, going on from the last checkpoint in the folder if there is one.

        `tick` hears how many rows a trunk at rest has read, where what it makes of them is kept.
        """
        job, how = self.data, self.settings
        learner = build_model(self.model, (course.objective, *how.auxiliary_objectives), how.seed, how.start)
        self.method.add_modules(learner, how.seed)
        with with_feature_cache(course, learner, self.method.caches, run, folder, tick) as known:
            train(self._training(learner, known), run, processes, folder, listeners)
        for language in how.auxiliary_objectives:
            remove_head(learner, language)
        drawn = how.start is StartFrom.SCRATCH
        return FineTunedNetwork(job.task, job.columns, how.max_length, learner.eval(), self.tokenizer, self.method, drawn)

    def _training(self, learner: MultiHeadModel, course: EpochBatches) -> TrainingSpec:
        how = self.settings
        beside = [WithAuxiliaryLM(course, self.tokenizer.vocab, language) for language in how.auxiliary_objectives]
        return TrainingSpec(
            model=learner,
            source=beside[0] if beside else course,
            optim=how.optim_config(self.method),
            budget=StepBudget(course.num_steps(how.epochs)),
            seed=how.seed,
            param_lr=param_lrs(self.method, learner),
        )


def model_digest(model: EncoderWithHeads) -> str:
    """A fingerprint of the weights of a network."""
    return digest_of_weights(dict(model.named_parameters()))
