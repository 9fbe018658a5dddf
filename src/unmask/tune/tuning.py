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
from unmask.codec import encode
from unmask.errors import InputError
from unmask.nets.model import Model
from unmask.objectives.mlm import MLM
from unmask.optimising import AdamW, Descent
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.budget import Steps
from unmask.train.learner import Learner
from unmask.train.loop import train
from unmask.train.processes import Processes
from unmask.train.record import Listener
from unmask.train.run import Run
from unmask.train.training import Training
from unmask.tune.beside import Beside, check_beside, take_off
from unmask.tune.course import Labelled
from unmask.tune.digest import digest_of_weights
from unmask.tune.encode import Room
from unmask.tune.job import Job
from unmask.tune.output import Ticker, silent
from unmask.tune.policy import Full, Policy, paces_of
from unmask.tune.remember import remembered
from unmask.tune.saved import Tuned
from unmask.tune.start import Origin, new_learner

LENGTH = 128
"""The longest row, unless something else is said or the network has room for less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a network is tuned. The defaults lie in the ranges that BERT's paper searched (Devlin et al., 2018, A.3)."""

    epochs: float = 3.0
    rate: float = Full.usual_rate
    batch: int = 32
    length: int = LENGTH
    seed: int = 0
    start: Origin = Origin.PRETRAINED
    beside: float = 0.0
    """What the loss of a language model on the texts of the task counts beside that of the task; 0 for none."""

    def __post_init__(self) -> None:
        numbers = {"--epochs": self.epochs, "--rate": self.rate, "--batch": self.batch, "--length": self.length}
        for name, number in numbers.items():
            if not 0 < number < math.inf:
                raise InputError(f"Tuning needs a positive number for {name}, found {number}.")
        if not 0 <= self.beside < math.inf:
            raise InputError(f"Tuning needs a number of at least 0 for --beside, found {self.beside}.")

    def descent(self, policy: Policy) -> Descent:
        """AdamW with bias correction, gradients of at most 1, and the schedule of the policy.

        BERT's code leaves the bias correction out. On small tasks that makes some runs fail (Zhang et al., 2021;
        Mosbach et al., 2021), so it is in here.
        """
        return Descent(AdamW(self.rate, correct_bias=True), policy.schedule, clip=1.0)

    @property
    def language(self) -> tuple[MLM, ...]:
        """What is learned beside the task."""
        return (MLM(self.beside),) if self.beside else ()


def fitting_length(model: Model, wish: int | None, usual: int = LENGTH) -> int:
    """The longest row: what was wished for, or what is usual, or as many positions as the network has."""
    most = model.positions or (wish or usual)
    if wish is not None and wish > most:
        raise InputError(f"--length {wish}: the network has {most} positions only. Use --length {most} or less.")
    return min(wish or usual, most)


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """Tune a network for a task."""

    job: Job
    model: Model
    tokenizer: Tokenizer
    settings: Settings
    source: str
    """What the network is called where it comes from."""
    policy: Policy = Full()

    def __post_init__(self) -> None:
        self.policy.check(self.model.shape)
        if self.settings.beside:
            check_beside(self.model, self.policy)

    def describe(self) -> dict[str, Any]:
        """Everything that decides what is learned: two calls that differ in it are two runs."""
        return {
            "unmask": __version__,
            "kind": "tune",
            "source": {"name": self.source, "weights": digest_of(self.model), "tokenizer": self.tokenizer.digest},
            "output": encode(self.job.output),
            "fields": asdict(self.job.choice),
            "policy": encode(self.policy),
            "files": [list(file) for file in self.job.files],
            "settings": {**asdict(self.settings), "dropout": self.model.shape.dropout},
        }

    def lay_out(self, tick: Callable[[int], None] = lambda done: None) -> Labelled:
        """Encode all questions and put them in the order in which they are learned. `tick` hears of questions done."""
        job, how = self.job, self.settings
        room = Room(how.length, self.model.shape.segments)
        learned = job.output.lay_out(job.learned, self.tokenizer, room, tick)
        judged = job.output.lay_out(job.judged, self.tokenizer, room, lambda done: tick(len(job.learned) + done))
        return Labelled(learned, judged, job.output.objective, how.batch, how.length, how.seed)

    def train(
        self,
        course: Labelled,
        run: Run,
        processes: Processes,
        folder: Path,
        listeners: Sequence[Listener] = (),
        tick: Ticker = silent,
    ) -> Tuned:
        """Train, going on from the last checkpoint in the folder if there is one.

        `tick` hears how many rows a trunk at rest has read, where what it makes of them is kept.
        """
        job, how = self.job, self.settings
        learner = new_learner(self.model, (course.objective, *how.language), how.seed, how.start)
        self.policy.equip(learner, how.seed)
        with remembered(course, learner, self.policy.remembers, run, folder, tick) as known:
            train(self._training(learner, known), run, processes, folder, listeners)
        for language in how.language:
            take_off(learner, language)
        drawn = how.start is Origin.SCRATCH
        return Tuned(job.output, job.choice, how.length, learner.eval(), self.tokenizer, self.policy, drawn)

    def _training(self, learner: Learner, course: Labelled) -> Training:
        how = self.settings
        beside = [Beside(course, self.tokenizer.vocab, language) for language in how.language]
        return Training(
            learner=learner,
            course=beside[0] if beside else course,
            descent=how.descent(self.policy),
            budget=Steps(course.steps(how.epochs)),
            seed=how.seed,
            paces=paces_of(self.policy, learner),
        )


def digest_of(model: Model) -> str:
    """A fingerprint of the weights of a network."""
    return digest_of_weights(dict(model.named_parameters()))
