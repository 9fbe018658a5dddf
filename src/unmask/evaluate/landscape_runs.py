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

from unmask.errors import InputError
from unmask.shards.files import disk_space, new_file, sweep
from unmask.train.budget import Steps
from unmask.train.checkpoint import CHECKPOINTS, discard, name_of
from unmask.train.course import Lesson
from unmask.train.folder import finish, finished
from unmask.train.learner import Learner
from unmask.train.loop import train
from unmask.train.processes import Processes
from unmask.train.record import Line, Listener
from unmask.train.run import Run
from unmask.train.training import Training
from unmask.tune.course import Labelled
from unmask.tune.places import places
from unmask.tune.policy import paces_of
from unmask.tune.start import Origin, new_learner
from unmask.tune.tuning import Tuning

WEIGHTS = "weights"
"""The folder of a run where its weights are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """A finished run."""

    folder: Path

    @property
    def points(self) -> list[Path]:
        """The kept weights, the start first."""
        return sorted((self.folder / WEIGHTS).glob("step-*.safetensors"))

    @property
    def steps(self) -> list[int]:
        """After how many steps each of them was kept."""
        return [int(path.stem.removeprefix("step-")) for path in self.points]

    def weights(self, number: int) -> dict[str, Tensor]:
        """One of them; -1 for the end."""
        path = self.points[number]
        try:
            return dict(load_file(path))
        except (OSError, SafetensorError) as error:
            raise InputError(f"{path} cannot be read ({error}). Choose a new folder for --out.") from error


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """A fine-tune to be made, from a given start."""

    tuning: Tuning
    course: Labelled
    """The rows, and the seed of their order."""
    origin: Origin
    folder: Path

    @property
    def steps(self) -> int:
        """How long it is."""
        return self.course.steps(self.tuning.settings.epochs)

    @property
    def done(self) -> bool:
        """Whether it came to its end."""
        return finished(self.folder)

    def start(self) -> Learner:
        """The learner before the first step: as `unmask tune` would make it for the seed of the tuning."""
        tuning = self.tuning
        return new_learner(tuning.model, (self.course.objective,), tuning.settings.seed, self.origin)

    def go(self, learner: Learner, run: Run, listeners: Sequence[Listener] = ()) -> Walked:
        """Train, going on from the last checkpoint; what is finished is only opened."""
        if not self.done:
            keeper, alone = Keeper(self.folder / WEIGHTS), Processes(0, 1, run.device)
            train(self._training(learner), run, alone, self.folder, [keeper.hear, *listeners], [keeper])
            finish(self.folder, {"step": self.steps})
        if (self.folder / CHECKPOINTS).is_dir():
            discard(self.folder / CHECKPOINTS)
        return Walked(self.folder)

    def _training(self, learner: Learner) -> Training:
        how, policy = self.tuning.settings, self.tuning.policy
        return Training(
            learner=learner,
            course=self.course,
            descent=how.descent(policy),
            budget=Steps(self.steps),
            seed=self.course.seed,
            paces=paces_of(policy, learner),
        )


class Keeper:
    """Keeps the weights at every trial: it hears of a trial first, and is shown the learner then."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.step = folder, 0
        with disk_space(folder):
            folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)

    def hear(self, line: Line) -> None:
        """A line of the record."""
        if line["kind"] == "trial":
            self.step = line["step"]

    def __call__(self, learner: Learner, lessons: Sequence[Lesson]) -> Line:
        """Keep the weights; the record says where."""
        path = self.folder / f"{name_of(self.step)}.safetensors"
        with new_file(path) as file:
            file.write(save({name: tensor.cpu().contiguous() for name, tensor in learner.weights().items()}))
        return {"kind": "weights", "file": f"{WEIGHTS}/{path.name}"}


def begun_like(learner: Learner, other: Learner, alike: bool) -> Learner:
    """The learner with the trunk of another, and with its head too where both ask the same.

    A trunk that is drawn depends on the shape of the head that is drawn along with it; here they begin as one.
    """
    learner.trunk.load_state_dict(other.trunk.state_dict())
    if alike:
        learner.heads.load_state_dict(other.heads.state_dict())
    return learner


def shared_parameters(learner: Learner, alike: bool) -> frozenset[str]:
    """What two runs have in common: everything if they ask the same (`alike`), else what is not in a head."""
    return frozenset(name for name, place in places(learner).items() if alike or not place.above)
