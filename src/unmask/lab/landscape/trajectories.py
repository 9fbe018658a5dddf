"""The fine-tuning runs of a landscape, with their weights along the way.

All runs of one side start from the same weights; they differ in the order of rows and the dropout, or in the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from unmask.core.errors import InputError
from unmask.core.io.atomic import atomic_file, disk_errors, remove_temp
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.finetune import FineTune
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.methods.protocol import param_lrs
from unmask.finetuning.parameter_roles import locate_parameters
from unmask.train.batches.recipe_batches import StepBatch
from unmask.train.build_step import TrainingSpec
from unmask.train.loop import train
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.rundir.checkpoint import CHECKPOINTS, checkpoint_name, remove_atomically
from unmask.train.rundir.folder import is_finished, mark_finished
from unmask.train.rundir.run_writer import Listener, LogLine
from unmask.train.schedule import StepBudget

WEIGHTS_FOLDER = "weights"
"""The folder of a run with the weights of each evaluation."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishedRun:
    """A finished run with the weights along its way."""

    folder: Path

    @property
    def weight_files(self) -> list[Path]:
        """The saved weights, the start first."""
        return sorted((self.folder / WEIGHTS_FOLDER).glob("step-*.safetensors"))

    @property
    def steps(self) -> list[int]:
        """The step of each of them."""
        return [int(path.stem.removeprefix("step-")) for path in self.weight_files]

    def weights(self, number: int) -> dict[str, Tensor]:
        """The weights by index; -1 for the end."""
        path = self.weight_files[number]
        try:
            return dict(load_file(path))
        except (OSError, SafetensorError) as error:
            raise InputError(f"{path} cannot be read ({error}). Choose a new folder for --out.") from error


@dataclass(frozen=True, slots=True, eq=False)
class TrackedFineTune:
    """A fine-tuning run that saves its weights at every evaluation."""

    finetune: FineTune
    batches: EpochBatches
    """The rows and the seed of their order."""
    start_from: StartFrom
    folder: Path

    @property
    def num_steps(self) -> int:
        """The number of steps."""
        return self.batches.num_steps(self.finetune.settings.epochs)

    @property
    def is_finished(self) -> bool:
        """Whether the run is finished."""
        return is_finished(self.folder)

    def build_model(self) -> MultiHeadModel:
        """The model before the first step, as in `unmask finetune` with the same seed."""
        finetune = self.finetune
        return build_model(finetune.model, (self.batches.objective,), finetune.settings.seed, self.start_from)

    def train(self, model: MultiHeadModel, run: RunConfig, listeners: Sequence[Listener] = ()) -> FinishedRun:
        """Train, or resume from the last checkpoint; a finished run is only opened."""
        if not self.is_finished:
            tracker, context = WeightTracker(self.folder / WEIGHTS_FOLDER), DistContext(0, 1, run.device)
            train(self._training(model), run, context, self.folder, [tracker.on_log_line, *listeners], [tracker])
            mark_finished(self.folder, {"step": self.num_steps})
        if (self.folder / CHECKPOINTS).is_dir():
            remove_atomically(self.folder / CHECKPOINTS)
        return FinishedRun(self.folder)

    def _training(self, model: MultiHeadModel) -> TrainingSpec:
        settings, method = self.finetune.settings, self.finetune.method
        return TrainingSpec(
            model=model,
            source=self.batches,
            optim=settings.optim_config(method),
            budget=StepBudget(self.num_steps),
            seed=self.batches.seed,
            param_lr=param_lrs(method, model),
        )


class WeightTracker:
    """Saves the weights at every evaluation: the log line gives the step, the call gives the model."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.step = folder, 0
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        remove_temp(folder)

    def on_log_line(self, line: LogLine) -> None:
        """Remember the step of an evaluation."""
        if line["kind"] == "eval":
            self.step = line["step"]

    def __call__(self, model: MultiHeadModel, batches: Sequence[StepBatch]) -> LogLine:
        """Save the weights; the returned log line names the file."""
        path = self.folder / f"{checkpoint_name(self.step)}.safetensors"
        with atomic_file(path) as file:
            file.write(save({name: tensor.cpu().contiguous() for name, tensor in model.named_weights().items()}))
        return {"kind": "weights", "file": f"{WEIGHTS_FOLDER}/{path.name}"}


def copy_start(model: MultiHeadModel, other: MultiHeadModel, same_task: bool) -> MultiHeadModel:
    """Copy the encoder of another model, and its heads if both have the same task.

    Random initialization of an encoder depends on the head that is initialized with it; the copy removes this.
    """
    model.network.load_state_dict(other.network.state_dict())
    if same_task:
        model.heads.load_state_dict(other.heads.state_dict())
    return model


def shared_parameters(model: MultiHeadModel, same_task: bool) -> frozenset[str]:
    """The parameters that two runs share: all for the same task, else those outside the heads."""
    return frozenset(
        name for name, place in locate_parameters(model).items() if same_task or not place.is_above_encoder
    )
