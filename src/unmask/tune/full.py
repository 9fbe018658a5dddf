"""A full fine-tune: every weight moves, as in BERT's paper.

What arrives: a network with its tokenizer, a job and settings. What leaves: a `Tuned`, through the one loop.
What never happens here: a loop of its own, or a word to the user.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unmask import __version__
from unmask.errors import InputError
from unmask.nets.model import Model
from unmask.optimising import AdamW, Descent, Linear, WarmupShare
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.budget import Steps
from unmask.train.loop import Training, train
from unmask.train.processes import Processes
from unmask.train.record import Listener
from unmask.train.run import Run
from unmask.tune.course import Answered, Labelled
from unmask.tune.encode import Room, encode
from unmask.tune.job import Job
from unmask.tune.saved import Tuned
from unmask.tune.sheet import Sheet
from unmask.tune.start import Origin, new_learner, settle

LENGTH = 128
"""The longest row, unless something else is said or the network has room for less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a network is tuned. The defaults lie in the ranges that BERT's paper searched (Devlin et al., 2018, A.3)."""

    epochs: float = 3.0
    rate: float = 5e-5
    batch: int = 32
    length: int = LENGTH
    seed: int = 0
    start: Origin = Origin.PRETRAINED

    def __post_init__(self) -> None:
        numbers = {"--epochs": self.epochs, "--rate": self.rate, "--batch": self.batch, "--length": self.length}
        for name, number in numbers.items():
            if not 0 < number < math.inf:
                raise InputError(f"Tuning needs a positive number for {name}, found {number}.")

    @property
    def descent(self) -> Descent:
        """AdamW with bias correction, a tenth of the steps to warm up, a straight fall, gradients of at most 1.

        BERT's code leaves the bias correction out. On small tasks that makes some runs fail (Zhang et al., 2021;
        Mosbach et al., 2021), so it is in here.
        """
        return Descent(AdamW(self.rate, correct_bias=True), Linear(WarmupShare(0.1)), clip=1.0)


def fitting_length(model: Model, wish: int | None) -> int:
    """The longest row: what was wished for, or 128, or as many positions as the network has."""
    most = model.positions or (wish or LENGTH)
    if wish is not None and wish > most:
        raise InputError(f"--length {wish}: the network has {most} positions only. Use --length {most} or less.")
    return min(wish or LENGTH, most)


@dataclass(frozen=True, slots=True, eq=False)
class FullTune:
    """Tune every weight of a network, under a new head."""

    job: Job
    model: Model
    tokenizer: Tokenizer
    settings: Settings
    source: str
    """What the network is called where it comes from."""

    def describe(self) -> dict[str, Any]:
        """Everything that decides what is learned: two calls that differ in it are two runs."""
        job = self.job
        return {
            "unmask": __version__,
            "kind": "tune",
            "source": {"name": self.source, "weights": _digest(self.model), "tokenizer": self.tokenizer.digest},
            "task": {"kind": job.task.kind, "texts": list(job.fields.texts), "label": job.fields.label},
            "files": [list(file) for file in job.files],
            "settings": asdict(self.settings),
        }

    def lay_out(self, tick: Callable[[int], None] = lambda done: None) -> Labelled:
        """Encode all rows and put them in the order in which they are learned from. `tick` hears of rows done."""
        job, how = self.job, self.settings
        learned = self._answered(job.learned, tick)
        judged = self._answered(job.judged, lambda done: tick(len(job.learned) + done))
        return Labelled(learned, judged, job.task.objective, how.batch, how.length, how.seed)

    def train(
        self, course: Labelled, run: Run, processes: Processes, folder: Path, listeners: Sequence[Listener] = ()
    ) -> Tuned:
        """Train, going on from the last checkpoint in the folder if there is one."""
        job, how = self.job, self.settings
        learner = new_learner(self.model, job.task, how.seed, how.start)
        budget = Steps(course.steps(how.epochs))
        training = Training(learner=learner, course=course, descent=how.descent, budget=budget, seed=how.seed)
        train(training, run, processes, folder, listeners)
        return Tuned(settle(learner, job.task), job.fields, how.length, learner.eval(), self.tokenizer)

    def _answered(self, sheet: Sheet, tick: Callable[[int], None]) -> Answered:
        room = Room(self.settings.length, self.model.shape.segments)
        rows = encode(sheet.texts, self.tokenizer, room, sheet.where, tick)
        return Answered(rows, self.job.task.truth(sheet))


def _digest(model: Model) -> str:
    """A fingerprint of the weights of a network."""
    state = hashlib.blake2b(digest_size=16)
    for name, parameter in sorted(model.named_parameters()):
        state.update(name.encode())
        state.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return state.hexdigest()
