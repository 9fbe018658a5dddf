"""The one loop. It knows no objective, no member and no task: it asks a course, and moves weights.

What arrives: a learner, a course, how to descend, a budget; a run and the folder where it lies.
What leaves: a trained learner, a record, and checkpoints from which the same call goes on.
What never happens here: a draw that depends on what happened before. Everything is a function of the step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from unmask.errors import UserError
from unmask.optimising import Descent
from unmask.train.budget import Budget, Progress
from unmask.train.checkpoint import Best, State
from unmask.train.course import Course, Lesson, Moment
from unmask.train.keeping import Keeping
from unmask.train.learner import Learner
from unmask.train.optim import set_rate
from unmask.train.processes import Processes
from unmask.train.run import Run
from unmask.train.schedule import multiplier
from unmask.train.step import Loaded, NotFinite, Score, Worker, own_draws, score
from unmask.train.trial import judge
from unmask.train.worker import make_worker

Line: TypeAlias = Mapping[str, object]
Listener: TypeAlias = Callable[[Line], None]
Observer: TypeAlias = Callable[[Learner, Sequence[Lesson]], Line]
"""Looks at the learner after a trial, with the lessons of that trial; what it returns is a line of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Everything that decides what is learned."""

    learner: Learner
    """With its first weights; a resume replaces them."""
    course: Course
    descent: Descent
    budget: Budget
    seed: int


def train(
    training: Training,
    run: Run,
    processes: Processes,
    folder: Path,
    listeners: Sequence[Listener] = (),
    observers: Sequence[Observer] = (),
) -> State:
    """Train until the budget is used up, going on from the last checkpoint in the folder if there is one."""
    worker = make_worker(training.learner, training.descent, training.course.mixed, training.seed, run, processes)
    with Keeping.open(folder, worker, listeners) as keeping, own_draws(run.device), ThreadPoolExecutor(1) as ahead:
        loop = _Loop(training, worker, keeping, ahead, training.course.trial(), observers)
        return loop.go()


@dataclass(slots=True)
class _Loop:
    training: Training
    worker: Worker
    keeping: Keeping
    ahead: ThreadPoolExecutor
    trial: Sequence[Lesson]
    observers: Sequence[Observer]
    zero: float = 0.0
    """When the run would have begun on the clock of this process, had it never been stopped."""
    last: float = 0.0
    """When the last step began."""

    def go(self) -> State:
        """Step after step."""
        state = self.keeping.state
        self.zero = time.monotonic() - state.progress.seconds
        self.last = state.progress.seconds
        if not self.keeping.resumed:
            state = self._judge(state)
        coming = self._fetch(state.progress)
        while self._share(state.progress) < 1:
            state, coming = self._step(state, coming.result())
        return state

    def _step(self, state: State, loaded: Loaded) -> tuple[State, Future[Loaded]]:
        training, lesson = self.training, loaded.lesson
        *counts, tokens, rows, predicted, clock = self.worker.processes.summed(
            [*lesson.asked(), lesson.tokens, lesson.rows, lesson.predicted, self._clock()]
        )
        before = replace(state.progress, seconds=clock)
        after = Progress(before.step + 1, before.tokens + int(tokens), clock)
        coming = self._fetch(after)
        rate = multiplier(training.descent.schedule, before.step, self._share(before))
        set_rate(self.worker.optimizer, rate)
        sums, norm = self._move(state, loaded, counts)
        names = [one.name for one in lesson.objectives]
        found = score(names, sums[: len(names)], sums[len(names) :], counts)
        line: dict[str, object] = {"kind": "step", "step": after.step, "share": round(self._share(after), 6)}
        line |= {"place": lesson.place, "length": lesson.length, **told(found)}
        line |= {"rate": training.descent.optimiser.rate * rate, "norm": round(norm, 4)}
        line |= {"padding": round(1 - tokens / (rows * lesson.length), 4), "predicted": round(predicted / tokens, 4)}
        self.keeping.add(line | self._pace(after, tokens))
        return self._after(state, after), coming

    def _pace(self, after: Progress, tokens: float) -> dict[str, object]:
        """Totals so far, and how fast this step was."""
        now = self._clock()
        spent, self.last = max(now - self.last, 1e-9), now
        speed = round(tokens / spent, 1)
        return {"tokens": after.tokens, "tokens_per_second": speed, "seconds": round(now, 3)}

    def _move(self, state: State, loaded: Loaded, counts: Sequence[float]) -> tuple[list[float], float]:
        """Gradients and a move; the sums of losses and of right answers over all processes."""
        try:
            sums = self.worker.backward(loaded, counts, state.progress.step)
            norm = self.worker.move(sums)
        except NotFinite as error:
            where = self.keeping.keep_broken(state, loaded)
            raise UserError(
                f"The loss or its gradient is not finite in step {state.progress.step + 1}, so the run stops. The "
                f"batch and the state before it are in {where}. Usual reasons: a rate that is too high, too short a "
                "warm-up, or broken weights to start from."
            ) from error
        return self.worker.processes.summed(sums.flatten().tolist()), norm

    def _after(self, state: State, after: Progress) -> State:
        """What is due when a step is over: a trial, a checkpoint, both or nothing."""
        trials = self.worker.run.trials
        done = self._share(after) >= 1
        due = done or math.floor(self._share(after) * trials) > math.floor(self._share(state.progress) * trials)
        state = replace(state, progress=after)
        if due:
            return self._judge(state)
        if self.keeping.is_late():
            self.keeping.save(state)
        return state

    def _judge(self, state: State) -> State:
        """A trial, then a checkpoint that knows its result."""
        found = judge(self.worker.learner, self.trial, self.worker.run, self.worker.processes)
        weights = {one.name: one.weight for lesson in self.trial for one in lesson.objectives}
        loss = sum(weights[name] * value for name, value in found.loss.items())
        if loss < state.best.loss:
            state = replace(state, best=Best(loss, state.progress.step))
        line: dict[str, object] = {"kind": "trial", "step": state.progress.step, **told(found)}
        line |= {"tokens": state.progress.tokens, "seconds": round(state.progress.seconds, 3)}
        self.keeping.add(line)
        for observer in self.observers if self.worker.processes.leads else ():
            self.keeping.add({**observer(self.worker.learner, self.trial), "step": state.progress.step})
        if state.progress.step:
            self.keeping.save(state)
        self.last = self._clock()
        return state

    def _fetch(self, progress: Progress) -> Future[Loaded]:
        """Begin with the lesson of a moment in the background."""
        moment = Moment(progress.step, self._share(progress))
        crew = self.worker.processes.crew(self.worker.run.micro)
        return self.ahead.submit(lambda: Loaded.of(self.training.course.lesson(moment, crew), self.worker.run.device))

    def _share(self, progress: Progress) -> float:
        return self.training.budget.share(progress)

    def _clock(self) -> float:
        """The time of the run; 0 for all processes but the first, so that their sum is its time."""
        return time.monotonic() - self.zero if self.worker.processes.leads else 0.0


def told(found: Score) -> dict[str, object]:
    """A score as a line of the record says it."""
    return {
        "loss": {name: round(value, 6) for name, value in found.loss.items()},
        "right": {name: round(value, 4) for name, value in found.right.items()},
        "count": dict(found.count),
    }
