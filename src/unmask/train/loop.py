"""The one loop. It knows no objective, no member and no task: it asks a course, and moves weights.

What arrives: a learner, a course, how to descend, a budget; a run and the folder where it lies.
What leaves: a trained learner, a record, and checkpoints from which the same call goes on.
What never happens here: a draw that depends on what happened before. Everything is a function of the step.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from unmask.errors import UserError
from unmask.train.begun import Begun, Size
from unmask.train.budget import Progress
from unmask.train.checkpoint import Best, State
from unmask.train.course import Lesson, Moment
from unmask.train.keeping import Keeping
from unmask.train.learner import Learner
from unmask.train.loading import Coming, Loader
from unmask.train.numbers import Numbers, mark, sent
from unmask.train.optim import set_rate
from unmask.train.processes import Processes
from unmask.train.record import Line, Listener
from unmask.train.run import Run
from unmask.train.schedule import multiplier
from unmask.train.step import Loaded, NotFinite, Worker, own_draws
from unmask.train.stopping import Stop
from unmask.train.training import Training
from unmask.train.trial import judge
from unmask.train.worker import make_worker

Observer: TypeAlias = Callable[[Learner, Sequence[Lesson]], Line]
"""Looks at the learner after a trial, with the lessons of that trial; what it returns is a line of the record."""
_USUAL_REASONS = "Usual reasons: a rate that is too high, too short a warm-up, or broken weights to start from."


def train(
    training: Training,
    run: Run,
    processes: Processes,
    folder: Path,
    listeners: Sequence[Listener] = (),
    observers: Sequence[Observer] = (),
) -> State:
    """Train until the budget is used up, going on from the last checkpoint in the folder if there is one."""
    worker = make_worker(
        training.learner, training.descent, training.course.mixed, training.seed, run, processes, training.paces
    )
    crew = processes.crew(run.micro)
    with (
        Keeping.open(folder, worker, listeners) as keeping,
        own_draws(run.device),
        Loader.open(training.course, crew, worker.run) as loader,
        Stop.heard(processes.leads) as stop,
    ):
        trial = training.course.trial()
        return _Loop(training, worker, keeping, loader, stop, trial, observers, mark(run.device)).go()


@dataclass(slots=True)
class _Loop:
    """A run in progress."""

    training: Training
    worker: Worker
    keeping: Keeping
    loader: Loader
    stop: Stop
    trial: Sequence[Lesson]
    observers: Sequence[Observer]
    last: Numbers
    """Those of the last step that was ended, or a mark where the next one begins."""
    zero: float = 0.0
    """When the run would have begun on the clock of this process, had it never been stopped."""
    leaving: bool = False
    """Whether all processes know that one of them is to stop."""
    open: deque[Begun] = field(default_factory=deque)
    """Steps that were begun, and whose numbers nobody has looked at yet."""

    def go(self) -> State:
        """Step after step."""
        state = self.keeping.state
        self.zero = time.monotonic() - state.progress.seconds
        if not self.keeping.resumed:
            state = self._judge(state)
        coming = self._ask(state.progress)
        while self._share(state.progress) < 1 and not self.leaving:
            state, coming = self._step(state, coming)
        if self.leaving:
            self.keeping.writer.wait()
            self.worker.processes.wait()  # whoever has nothing to write would be missed at once
            raise KeyboardInterrupt
        return state

    def _step(self, state: State, coming: Coming) -> tuple[State, Coming]:
        """Begin a step, and ask for the lesson of the next one; then end the step whose turn it is.

        That is this one, if none may be queued; else one before it, whose numbers have arrived by now.
        """
        loaded, waited = coming.take()
        size = Size.of(self.worker.processes.summed(Size.asks(loaded.lesson)))
        before = state.progress
        after = replace(before, step=before.step + 1, tokens=before.tokens + int(size.tokens))
        coming = self._ask(after)
        rate = multiplier(self.training.descent.schedule, before.step, self._share(before))
        set_rate(self.worker.optimizer, rate)
        self.worker.thaw(self._share(before))
        weighed = sent(self.worker.learner.balance.learned(loaded.lesson.objectives))
        said = self._compute(state, loaded, size.counts)
        clock, late, leaving = self.worker.processes.summed([self._clock(), self.keeping.is_late(), self._is_to_stop()])
        self.leaving = bool(leaving)
        after = replace(after, seconds=clock)
        full_rate = self.training.descent.optimiser.rate
        self.open.append(Begun(state, after, loaded, size, full_rate * rate, waited, said, weighed))
        self._end(self.worker.queue)
        return self._after(state, after, bool(late or leaving)), coming

    def _compute(self, state: State, loaded: Loaded, counts: Sequence[float]) -> Numbers:
        """Gradients and a move. What they say is looked at when the step is ended."""
        try:
            return self.worker.take(loaded, counts, state.progress.step)
        except NotFinite as error:
            raise self._broken(state, loaded) from error

    def _end(self, queue: int) -> None:
        """Look at the numbers of all steps but the last few, and record them."""
        while len(self.open) > queue:
            step = self.open.popleft()
            norm, *sums = step.said.read()
            sums = self.worker.processes.summed(sums)
            if not all(map(math.isfinite, (norm, *sums))):
                raise self._broken(step.before, step.loaded)
            spent, self.last = step.said.seconds_since(self.last), step.said
            self.keeping.add(step.line(self._share(step.after), norm, sums, spent, self._clock()))

    def _broken(self, state: State, loaded: Loaded) -> UserError:
        """Keep the batch and the state before it, which is still that of the network."""
        where = self.keeping.keep_broken(state, loaded)
        batch = "batch" if self.worker.processes.world == 1 else "first process's rows"
        return UserError(
            f"The loss or its gradient is not finite in step {state.progress.step + 1}, so the run stops. The {batch} "
            f"and the state before it are in {where}. {_USUAL_REASONS}"
        )

    def _after(self, state: State, after: Progress, late: bool) -> State:
        """What is due when a step is over: a trial with a checkpoint, a checkpoint alone, or nothing."""
        due = self._share(after) >= 1 or self._trials(after) > self._trials(state.progress)
        state = replace(state, progress=after)
        if due or late:
            self._end(queue=0)  # what is judged or saved must be sound, and the record must lead up to it
        if late and not due:
            self.keeping.save(state)
        return self._judge(state) if due else state

    def _judge(self, state: State) -> State:
        """A trial, then a checkpoint that knows its result."""
        found = judge(self.worker.learner, self.trial, self.worker.run, self.worker.processes)
        loss = found.summed({one.name: one for lesson in self.trial for one in lesson.objectives}.values())
        if not math.isfinite(loss):
            raise UserError(
                f"The loss on held-out text is not finite after step {state.progress.step}, so the run stops without "
                f"saving these weights. {_USUAL_REASONS}"
            )
        if loss < state.best.loss:
            state = replace(state, best=Best(loss, state.progress.step))
        spent = {"tokens": state.progress.tokens, "seconds": round(state.progress.seconds, 3)}
        self.keeping.add({"kind": "trial", "step": state.progress.step, **found.told(), **spent})
        for observer in self.observers if self.worker.processes.leads else ():
            self.keeping.add({**observer(self.worker.learner, self.trial), "step": state.progress.step})
        if state.progress.step:
            self.keeping.save(state)
        self.last = mark(self.worker.run.device)
        self.leaving = any(self.worker.processes.summed([self._is_to_stop()]))
        return state

    def _is_to_stop(self) -> bool:
        """Whether the user wants it, or nobody looks on any more."""
        return self.stop.wished or self.keeping.deserted

    def _ask(self, progress: Progress) -> Coming:
        """Begin with the lesson of a moment in the background."""
        return self.loader.ask(Moment(progress.step, self._share(progress)))

    def _trials(self, progress: Progress) -> int:
        """How many trials are due until then; rounding must not move one."""
        return math.floor(self._share(progress) * self.worker.run.trials + 1e-9)

    def _share(self, progress: Progress) -> float:
        return self.training.budget.share(progress)

    def _clock(self) -> float:
        """The time of the run; 0 for all processes but the first, so that their sum is its time."""
        return time.monotonic() - self.zero if self.worker.processes.leads else 0.0
