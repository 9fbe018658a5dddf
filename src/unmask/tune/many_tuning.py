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
from unmask.codec import encode
from unmask.errors import InputError
from unmask.nets.model import Model
from unmask.optimising import Adamax, Descent
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.budget import Steps
from unmask.train.learner import Learner
from unmask.train.loop import train
from unmask.train.processes import Processes
from unmask.train.record import Listener
from unmask.train.run import Run
from unmask.train.training import Training
from unmask.tune.course import Labelled
from unmask.tune.encode import Room
from unmask.tune.exercise import Exercise
from unmask.tune.many_course import Many, Order, Weighed
from unmask.tune.many_file import Task
from unmask.tune.output import Output
from unmask.tune.policy import Full
from unmask.tune.saved import Tuned
from unmask.tune.sheet import AnySheet
from unmask.tune.start import Origin, new_learner
from unmask.tune.tuning import Settings, digest_of


class Mover(StrEnum):
    """What moves the weights."""

    ADAMW = "adamw"
    """As in all tuning here, so that one task and many can be compared."""
    ADAMAX = "adamax"
    """As in MT-DNN's paper."""


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """Tune a network for several tasks at once."""

    tasks: tuple[Task, ...]
    model: Model
    tokenizer: Tokenizer
    settings: Settings
    source: str
    """What the network is called where it comes from."""
    order: Order = Order.MIXED
    mover: Mover = Mover.ADAMW
    heads: Mapping[str, Tensor] = field(default_factory=dict)
    """Weights of heads that have learned before, by name; other heads are drawn."""

    def __post_init__(self) -> None:
        for task in self.tasks:
            if hasattr(nn.ModuleDict(), task.name):
                raise InputError(f"A task cannot be called {task.name!r}: torch needs that name. Add a digit to it.")

    def describe(self) -> dict[str, Any]:
        """Everything that decides what is learned: two calls that differ in it are two runs."""
        source = {"name": self.source, "weights": digest_of(self.model), "tokenizer": self.tokenizer.digest}
        return {
            "unmask": __version__,
            "kind": "multitask",
            "source": source | {"heads": _digest(self.heads)},
            "tasks": {task.name: _described(task) for task in self.tasks},
            "order": self.order.value,
            "optimiser": self.mover.value,
            "settings": asdict(self.settings),
        }

    def lay_out(self, tick: Callable[[int], None] = lambda done: None) -> Many:
        """Encode all questions of all tasks. `tick` hears of questions done."""
        return Many(tuple(self._parts(tick)), self.settings.epochs, self.order, self.settings.seed)

    def _parts(self, tick: Callable[[int], None]) -> Iterator[Labelled]:
        how, done = self.settings, 0
        for task in self.tasks:
            job = task.job
            learned = self._side(job.output, job.learned, done, tick)
            judged = self._side(job.output, job.judged, done + len(job.learned), tick)
            done += len(job.learned) + len(job.judged)
            objective = Weighed(job.output.objective, task.weight)
            yield Labelled(learned, judged, objective, how.batch, how.length, how.seed, task.name)

    def _side(self, output: Output, sheet: AnySheet, before: int, tick: Callable[[int], None]) -> Exercise:
        room = Room(self.settings.length, self.model.shape.segments)
        return output.lay_out(sheet, self.tokenizer, room, lambda done: tick(before + done))

    def train(
        self, course: Many, run: Run, processes: Processes, folder: Path, listeners: Sequence[Listener] = ()
    ) -> Learner:
        """Train, going on from the last checkpoint in the folder if there is one."""
        training = Training(
            learner=self._learner(course),
            course=course,
            descent=self.descent,
            budget=Steps(course.steps),
            seed=self.settings.seed,
        )
        train(training, run, processes, folder, listeners)
        return training.learner.eval()

    @property
    def descent(self) -> Descent:
        """As for one task; only the optimiser may be another."""
        usual = self.settings.descent(Full())
        return usual if self.mover is Mover.ADAMW else replace(usual, optimiser=Adamax(self.settings.rate))

    @torch.no_grad()
    def _learner(self, course: Many) -> Learner:
        """A learner with a head for each task; heads that have learned before go on from there."""
        learner = new_learner(self.model, course.objectives, self.settings.seed, self.settings.start)
        for name, parameter in learner.named_parameters():
            if name in self.heads:
                parameter.copy_(self.heads[name])
        return learner

    def tuned(self, learner: Learner, task: Task) -> Tuned:
        """One task's share of a learner: the trunk, and its own head."""
        output, trunk = task.job.output, learner.trunk
        with torch.device("meta"):  # only the frame is needed, all weights are there already
            alone = Learner(trunk.trunk, (output.objective,), learner.vocabulary, learner.positions)
        alone.trunk, alone.heads = trunk, nn.ModuleDict({task.name: learner.heads[task.name]})
        return Tuned(output, task.job.choice, self.settings.length, alone.eval(), self.tokenizer)

    def then(self, task: Task, tuned: Tuned, epochs: float) -> Together:
        """Go on with one task alone, from the trunk and the head that have learned with the others."""
        learner = tuned.learner
        heads = {name: tensor for name, tensor in learner.weights().items() if name.startswith("heads.")}
        how = replace(self.settings, epochs=epochs, start=Origin.PRETRAINED)
        return replace(self, tasks=(task,), model=trunk_of(learner), settings=how, heads=heads)


def trunk_of(learner: Learner) -> Model:
    """The trunk of a learner as a network without heads; the weights are shared, not copied."""
    with torch.device("meta"):
        model = Model(learner.trunk.trunk, learner.vocabulary, learner.positions, tokens=False, row=False)
    model.trunk = learner.trunk
    return model


def _described(task: Task) -> dict[str, object]:
    job = task.job
    files = [list(file) for file in job.files]
    return {"weight": task.weight, "output": encode(job.output), "fields": asdict(job.choice), "files": files}


def _digest(weights: Mapping[str, Tensor]) -> str:
    """A fingerprint of some weights; nothing for none."""
    state = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(weights.items()):
        state.update(name.encode() + tensor.cpu().contiguous().numpy().tobytes())
    return state.hexdigest() if weights else ""
