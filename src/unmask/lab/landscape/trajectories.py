"""The fine-tunes that a landscape is drawn around, and their weights along the way.

What arrives: a tuning, its course, and a seed. What leaves: runs whose weights are kept at every trial.
What never happens here: another start. All runs of one side begin with the same weights, to the last bit; what may
differ is the order of the rows and the dropout, or the rows themselves.
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
from unmask.train.batches.protocol import StepBatch
from unmask.train.budget import StepBudget
from unmask.train.distributed import DistContext
from unmask.train.loop import train
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import RunConfig
from unmask.train.rundir.checkpoint import CHECKPOINTS, checkpoint_name, remove_atomically
from unmask.train.rundir.folder import is_finished, mark_finished
from unmask.train.rundir.metrics_log import Listener, LogLine
from unmask.train.training_spec import TrainingSpec

WEIGHTS_FOLDER = "weights"
"""The folder of a run where its weights are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishedRun:
    """A finished run."""

    folder: Path

    @property
    def weight_files(self) -> list[Path]:
        """The kept weights, the start first."""
        return sorted((self.folder / WEIGHTS_FOLDER).glob("step-*.safetensors"))

    @property
    def steps(self) -> list[int]:
        """After how many steps each of them was kept."""
        return [int(path.stem.removeprefix("step-")) for path in self.weight_files]

    def weights(self, number: int) -> dict[str, Tensor]:
        """One of them; -1 for the end."""
        path = self.weight_files[number]
        try:
            return dict(load_file(path))
        except (OSError, SafetensorError) as error:
            raise InputError(f"{path} cannot be read ({error}). Choose a new folder for --out.") from error


@dataclass(frozen=True, slots=True, eq=False)
class TrackedFineTune:
    """A fine-tune to be made, from a given start."""

    finetune: FineTune
    batches: EpochBatches
    """The rows, and the seed of their order."""
    start_from: StartFrom
    folder: Path

    @property
    def num_steps(self) -> int:
        """How long it is."""
        return self.batches.num_steps(self.finetune.settings.epochs)

    @property
    def is_finished(self) -> bool:
        """Whether it came to its end."""
        return is_finished(self.folder)

    def build_model(self) -> MultiHeadModel:
        """The learner before the first step: as `unmask tune` would make it for the seed of the tuning."""
        tuning = self.finetune
        return build_model(tuning.model, (self.batches.objective,), tuning.settings.seed, self.start_from)

    def train(self, learner: MultiHeadModel, run: RunConfig, listeners: Sequence[Listener] = ()) -> FinishedRun:
        """Train, going on from the last checkpoint; what is finished is only opened."""
        if not self.is_finished:
            keeper, alone = WeightTracker(self.folder / WEIGHTS_FOLDER), DistContext(0, 1, run.device)
            train(self._training(learner), run, alone, self.folder, [keeper.hear, *listeners], [keeper])
            mark_finished(self.folder, {"step": self.num_steps})
        if (self.folder / CHECKPOINTS).is_dir():
            remove_atomically(self.folder / CHECKPOINTS)
        return FinishedRun(self.folder)

    def _training(self, learner: MultiHeadModel) -> TrainingSpec:
        how, policy = self.finetune.settings, self.finetune.method
        return TrainingSpec(
            model=learner,
            source=self.batches,
            optim=how.optim_config(policy),
            budget=StepBudget(self.num_steps),
            seed=self.batches.seed,
            param_lr=param_lrs(policy, learner),
        )


class WeightTracker:
    """Keeps the weights at every trial: it hears of a trial first, and is shown the learner then."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.step = folder, 0
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        remove_temp(folder)

    def hear(self, line: LogLine) -> None:
        """A line of the record."""
        if line["kind"] == "eval":
            self.step = line["step"]

    def __call__(self, learner: MultiHeadModel, lessons: Sequence[StepBatch]) -> LogLine:
        """Keep the weights; the record says where."""
        path = self.folder / f"{checkpoint_name(self.step)}.safetensors"
        with atomic_file(path) as file:
            file.write(save({name: tensor.cpu().contiguous() for name, tensor in learner.named_weights().items()}))
        return {"kind": "weights", "file": f"{WEIGHTS_FOLDER}/{path.name}"}


def copy_start(learner: MultiHeadModel, other: MultiHeadModel, alike: bool) -> MultiHeadModel:
    """The learner with the trunk of another, and with its head too where both ask the same.

    A trunk that is drawn depends on the shape of the head that is drawn along with it; here they begin as one.
    """
    learner.network.load_state_dict(other.network.state_dict())
    if alike:
        learner.heads.load_state_dict(other.heads.state_dict())
    return learner


def shared_parameters(learner: MultiHeadModel, alike: bool) -> frozenset[str]:
    """What two runs have in common: everything if they ask the same (`alike`), else what is not in a head."""
    return frozenset(name for name, place in locate_parameters(learner).items() if alike or not place.is_above_encoder)
