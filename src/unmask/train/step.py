"""One step: forward and backward for each micro-batch, one division, one clipping, one move.

What arrives: batches and their objectives. What leaves: moved weights, and what the step has to say.
What never happens here: knowing an objective. Every loss is a sum with a count; the counts of all micro-batches and all
processes are known before the first forward pass, so each sum is divided by the right number once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from unmask.keys import Key
from unmask.nets.batch import Batch, collate
from unmask.nets.carry import on_device
from unmask.nets.even import can_even, even, room_for
from unmask.nets.halves import with_halves
from unmask.nets.layout import ship
from unmask.objectives.heads import Term
from unmask.objectives.part import Prepares, Taught
from unmask.train.course import Lesson
from unmask.train.learner import Learner
from unmask.train.numbers import Numbers, sent
from unmask.train.optim import clip_gradients
from unmask.train.processes import Processes
from unmask.train.run import Run


class NotFinite(Exception):
    """A loss or a gradient is not a number; the weights have not been moved."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A lesson with its tensors on the device."""

    lesson: Lesson
    batches: tuple[Batch, ...]

    @property
    def evened(self) -> bool:
        """Whether all batches are filled up to a round shape."""
        return all(batch.spare for batch in self.batches)

    @staticmethod
    def of(lesson: Lesson, device: torch.device, evened: bool = False) -> Loaded:
        """Collate all micro-batches on the host, even them out if that is wished for and can be, and send them."""
        batches = [collate(one, "cpu", lesson.apart) for one in lesson.instances]
        for objective in (one for one in lesson.objectives if isinstance(one, Prepares)):
            batches = [objective.prepare(batch) for batch in batches]
        if evened and all(map(can_even, batches)):
            room = room_for(batches, lesson.length)
            batches = [even(batch, room) for batch in batches]
        return Loaded(lesson, tuple(on_device(batch, device) for batch in batches))


@dataclass(frozen=True, slots=True)
class Work:
    """Everything that the kernels of a step read."""

    batches: tuple[Batch, ...]
    objectives: tuple[Taught, ...]
    asked: tuple[bool, ...]
    """Which objectives are asked anything in this step."""
    shares_O: Tensor
    """On the device: what one answer counts in the mean of each objective."""


@dataclass(frozen=True, slots=True)
class Score:
    """Mean loss and share of right answers, for each objective that was asked anything, and of how many."""

    loss: Mapping[str, float]
    right: Mapping[str, float]
    count: Mapping[str, int]

    def summed(self, objectives: Iterable[Taught]) -> float:
        """The sum of the losses under the weights of the recipe, which is what runs and trials are compared by."""
        return sum(one.weight * self.loss[one.name] for one in objectives if one.name in self.loss)

    def told(self) -> dict[str, object]:
        """The score as a line of the record says it."""
        return {
            "loss": {name: round(value, 6) for name, value in self.loss.items()},
            "right": {name: round(value, 4) for name, value in self.right.items()},
            "count": dict(self.count),
        }


@dataclass(frozen=True, slots=True)
class Worker:
    """What a step is done with. `module` is the learner, or the learner as several processes share it."""

    learner: Learner
    module: Learner | DistributedDataParallel
    optimizer: Optimizer
    run: Run
    processes: Processes
    clip: float
    seed: int
    queue: int = 0
    """How many steps may be queued before the numbers of one are looked at; 0 for an optimiser that cannot skip."""
    broken: Tensor = field(default_factory=lambda: torch.zeros(()))
    """On the device: 1 as soon as a queued step was not finite. From then on none moves anything."""
    waiting: Mapping[float, Sequence[nn.Parameter]] = field(default_factory=dict)
    """Parameters that begin to move later, by the share of the budget from which on they do."""
    repeats: Callable[[Work], Tensor] | None = None
    """A whole step by way of recordings, where steps are recorded."""

    def thaw(self, share: float) -> None:
        """Ask for gradients where parameters move by now; a function of the share, so a resume thaws the same."""
        for since, parameters in self.waiting.items():
            for parameter in parameters:
                parameter.requires_grad_(share >= since)

    def take(self, loaded: Loaded, counts: Sequence[float], step: int) -> Numbers:
        """A whole step: gradients and a move. Says the norm of the gradient and the sums."""
        work = self._begin(loaded, counts, step)
        # What is not evened out may read lists of the host, and is computed as it comes.
        compute = self.repeats if self.repeats and loaded.evened else self.whole
        return sent(compute(work))

    def whole(self, work: Work) -> Tensor:
        """All kernels of a step, which is what can be recorded."""
        return self._move(self._gradients(work))

    def backward(self, loaded: Loaded, counts: Sequence[float], step: int) -> Tensor:
        """Gradients of a whole step; returns the sums of losses and of right answers, one column an objective."""
        return self._gradients(self._begin(loaded, counts, step))

    def move(self, sums: Tensor) -> Numbers:
        """Clip and step, unless something is not finite. Says the norm of the gradient and the sums.

        Where steps are queued, nobody looks at the numbers here: a flag on the device keeps the optimiser from moving
        anything in this step and in all that follow, so that the state is still the one before this step when somebody
        does. Otherwise they are looked at before anything moves.
        """
        return sent(self._move(sums))

    def _begin(self, loaded: Loaded, counts: Sequence[float], step: int) -> Work:
        """What the kernels of a step read, and their draws: seeded once, whatever the step is cut into."""
        seed_dropout(self.seed, step, self.processes.rank)
        # Processes average their gradients, so each counts for as many as there are.
        shares_O = torch.tensor([self.processes.world / max(count, 1) for count in counts])
        asked = tuple(map(bool, counts))
        return Work(loaded.batches, loaded.lesson.objectives, asked, ship(shares_O, self.run.device))

    def _gradients(self, work: Work) -> Tensor:
        """Gradients of all micro-batches, and the sums over them."""
        sums = torch.zeros(2, len(work.objectives), device=self.run.device)
        for number in range(len(work.batches)):
            sums += self._learn(work, number)
        return sums

    def _learn(self, work: Work, number: int) -> Tensor:
        """Gradients of a micro-batch are added to those that are there; the sums of its losses and right answers."""
        last = number == len(work.batches) - 1
        with self._alone(not last), self.run.autocast():
            terms = self._terms(work.batches[number], work.objectives)
            loss = self._loss(terms, work)
            if last:
                loss = loss + self._price(work)
            loss.backward()  # type: ignore[no-untyped-call]
            self.learner.aside.join()
        return torch.stack([torch.stack([term.total.detach(), term.right.float()]) for term in terms], dim=1)

    def _terms(self, batch: Batch, objectives: Sequence[Taught]) -> tuple[Term, ...]:
        """What the module says to a batch; where kernels of our own are taken, weights are cast all at once."""
        terms: tuple[Term, ...]
        if self.run.halves and self.module is self.learner:
            terms = with_halves(self.module, torch.bfloat16, batch, objectives)
        else:
            terms = self.module(batch, objectives)
        return terms

    def _move(self, sums: Tensor) -> Tensor:
        norm = clip_gradients(self.learner.network_parameters(), self.clip)
        said = torch.cat([norm.reshape(1), sums.flatten()])
        if self.queue:
            torch.maximum(self.broken, (~said.isfinite().all()).float(), out=self.broken)
            self.processes.largest(self.broken)
        elif not bool(said.isfinite().all()):
            raise NotFinite
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return said

    def _loss(self, terms: Sequence[Term], work: Work) -> Tensor:
        weights: Sequence[float | Tensor] = self.learner.balance.weights(work.objectives)
        weighed = zip(terms, weights, work.shares_O.unbind(), strict=True)
        return torch.stack([term.total * (weight * share) for term, weight, share in weighed]).sum()

    def _price(self, work: Work) -> float | Tensor:
        """What the weights of this step cost: once a step, whatever it is cut into, and once for all processes."""
        return self.learner.balance.price(
            [one for one, asked in zip(work.objectives, work.asked, strict=True) if asked]
        )

    def _alone(self, more: bool) -> AbstractContextManager[None]:
        """Gradients cross to the other processes once a step, with the last micro-batch; not while there are more."""
        if more and isinstance(self.module, DistributedDataParallel):
            return self.module.no_sync()
        return contextlib.nullcontext()


def seed_dropout(seed: int, *address: int) -> None:
    """Dropout is drawn from an address too, so a resumed run drops what an undisturbed one would have dropped."""
    torch.manual_seed(int(Key.of(seed, "dropout", *address).state) & 0x7FFFFFFFFFFFFFFF)


def score(names: Sequence[str], losses: Sequence[float], rights: Sequence[float], counts: Sequence[float]) -> Score:
    """Sums over everything, divided by counts over everything."""
    held = list(zip(names, losses, rights, counts, strict=True))
    return Score(
        {name: total / count for name, total, _, count in held if count},
        {name: right / count for name, _, right, count in held if count},
        {name: int(count) for name, _, _, count in held if count},
    )


@contextlib.contextmanager
def own_draws(device: torch.device) -> Iterator[None]:
    """Leave the draws of whoever called us as they were."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield
