"""Fine-tune a model for one task with one method, through the shared training loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from unmask.finetuning.data.encode import LengthLimits, Ticker, ignore_progress
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.feature_cache import with_feature_cache
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.methods.protocol import FullFineTuning, Method, param_lrs
from unmask.finetuning.task_data import TaskData
from unmask.nets.model import EncoderWithHeads
from unmask.objectives.mlm import MLM
from unmask.train.build_step import TrainingSpec
from unmask.train.loop import train
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.rundir.run_writer import Listener
from unmask.train.rundir.weights_digest import digest_of_weights
from unmask.train.schedule import StepBudget

DEFAULT_MAX_LENGTH = 128
"""The default row length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneSettings:
    """Fine-tuning hyperparameters; the defaults are in the ranges of BERT's paper (Devlin et al., 2018, A.3)."""

    epochs: float = 3.0
    lr: float = FullFineTuning.default_lr
    batch_size: int = 32
    max_length: int = DEFAULT_MAX_LENGTH
    seed: int = 0
    start: StartFrom = StartFrom.PRETRAINED
    lm_weight: float = 0.0
    """Weight of the auxiliary language-model loss; 0 for none."""

    def __post_init__(self) -> None:
        numbers = {
            "--epochs": self.epochs,
            "--lr": self.lr,
            "--batch-size": self.batch_size,
            "--max-length": self.max_length,
        }
        for name, number in numbers.items():
            if not 0 < number < math.inf:
                raise InputError(f"Fine-tuning needs a positive number for {name}, found {number}.")
        if not 0 <= self.lm_weight < math.inf:
            raise InputError(f"Fine-tuning needs a number of at least 0 for --lm-weight, found {self.lm_weight}.")

    def optim_config(self, method: Method) -> OptimConfig:
        """AdamW with bias correction, gradient clipping at 1, and the learning-rate schedule of the method.

        BERT's code leaves the bias correction out. On small tasks that makes some runs diverge (Zhang et al., 2021;
        Mosbach et al., 2021), so it is used here.
        """
        return OptimConfig(AdamW(self.lr, bias_correction=True), method.schedule, max_grad_norm=1.0)

    @property
    def auxiliary_objectives(self) -> tuple[MLM, ...]:
        """Objectives in addition to the task."""
        return (MLM(self.lm_weight),) if self.lm_weight else ()


def choose_max_length(model: EncoderWithHeads, requested: int | None, default: int = DEFAULT_MAX_LENGTH) -> int:
    """The row length: as requested, else the default, at most the positions of the model."""
    most = model.max_positions or (requested or default)
    if requested is not None and requested > most:
        raise InputError(
            f"--max-length {requested}: the model has {most} positions only. Use --max-length {most} or less."
        )
    return min(requested or default, most)


@dataclass(frozen=True, slots=True, eq=False)
class FineTune:
    """One fine-tuning run."""

    data: TaskData
    model: EncoderWithHeads
    tokenizer: Tokenizer
    settings: FineTuneSettings
    source: str
    """The name of the base model."""
    method: Method = FullFineTuning()

    def __post_init__(self) -> None:
        self.method.check(self.model.config)
        if self.settings.lm_weight:
            check_auxiliary_lm(self.model, self.method)

    def describe(self) -> dict[str, Any]:
        """Everything that determines the result; two runs with different descriptions are different runs."""
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

    def encode(self, tick: Ticker = ignore_progress) -> EpochBatches:
        """Encode all examples; `tick` receives the number of encoded examples."""
        data, settings = self.data, self.settings
        limits = LengthLimits(settings.max_length, self.model.config.num_segments)
        train = data.task.encode(data.train, self.tokenizer, limits, tick)
        dev = data.task.encode(data.dev, self.tokenizer, limits, lambda done: tick(len(data.train) + done))
        return EpochBatches(train, dev, data.task.objective, settings.batch_size, settings.max_length, settings.seed)

    def train(
        self,
        batches: EpochBatches,
        run: RunConfig,
        processes: DistContext,
        folder: Path,
        listeners: Sequence[Listener] = (),
        tick: Ticker = ignore_progress,
    ) -> FineTunedNetwork:
        """Train, resuming from the last checkpoint in the folder. `tick` receives the rows added to a feature cache."""
        data, how = self.data, self.settings
        learner = build_model(self.model, (batches.objective, *how.auxiliary_objectives), how.seed, how.start)
        self.method.add_modules(learner, how.seed)
        with with_feature_cache(batches, learner, self.method.caches, run, folder, tick) as cached:
            train(self._training(learner, cached), run, processes, folder, listeners)
        for language in how.auxiliary_objectives:
            remove_head(learner, language)
        scratch = how.start is StartFrom.SCRATCH
        return FineTunedNetwork(
            data.task, data.columns, how.max_length, learner.eval(), self.tokenizer, self.method, scratch
        )

    def _training(self, learner: MultiHeadModel, batches: EpochBatches) -> TrainingSpec:
        how = self.settings
        auxiliary = [WithAuxiliaryLM(batches, self.tokenizer.vocab, language) for language in how.auxiliary_objectives]
        return TrainingSpec(
            model=learner,
            source=auxiliary[0] if auxiliary else batches,
            optim=how.optim_config(self.method),
            budget=StepBudget(batches.num_steps(how.epochs)),
            seed=how.seed,
            param_lr=param_lrs(self.method, learner),
        )


def model_digest(model: EncoderWithHeads) -> str:
    """The digest of the weights of a model."""
    return digest_of_weights(dict(model.named_parameters()))
