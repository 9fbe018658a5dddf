"""The one loop. It knows no objective, no member and no task: it asks a course, and moves weights.

What arrives: a learner, a course, how to descend, a budget; a run and the folder where it lies.
What leaves: a trained learner, a record, and checkpoints from which the same call goes on.
What never happens here: a draw that depends on what happened before. Everything is a function of the step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
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
from unmask.train.pace import Paces, full_pace
from unmask.train.processes import Processes
from unmask.train.record import Line, Listener
from unmask.train.run import Run
from unmask.train.schedule import multiplier
from unmask.train.step import Loaded, NotFinite, Score, Worker, own_draws, score
from unmask.train.trial import judge
from unmask.train.worker import make_worker

Observer: TypeAlias = Callable[[Learner, Sequence[Lesson]], Line]
"""Looks at the learner after a trial, with the lessons of that trial; what it returns is a line of the record."""
_USUAL_REASONS = "Usual reasons: a rate that is too high, too short a warm-up, or broken weights to start from."


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Everything that decides what is learned."""

    learner: Learner
    """With its first weights; a resume replaces them."""
    course: Course
    descent: Descent
    budget: Budget
    seed: int
    paces: Paces = full_pace
    """How fast each parameter moves, and from when on."""


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
    with Keeping.open(folder, worker, listeners) as keeping, own_draws(run.device), ThreadPoolExecutor(1) as ahead:
        loop = _Loop(training, worker, keeping, ahead, training.course.trial(), observers)
        return loop.go()


@dataclass(slots=True)
class _Loop:
    """A run in progress."""

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
        """One step, and the lesson of the next one, which is fetched while this one is computed."""
        training, lesson = self.training, loaded.lesson
        *counts, tokens, rows, predicted = self.worker.processes.summed(
            [*lesson.asked(), lesson.tokens, lesson.rows, lesson.predicted]
        )
        before = state.progress
        after = replace(before, step=before.step + 1, tokens=before.tokens + int(tokens))
        coming = self._fetch(after)
        rate = multiplier(training.descent.schedule, before.step, self._share(before))
        set_rate(self.worker.optimizer, rate)
        self.worker.thaw(self._share(before))
        weighed = self.worker.learner.balance.told(lesson.objectives)
        found, norm, clock = self._move(state, loaded, counts)
        after = replace(after, seconds=clock)
        self.keeping.add(
            {
                "kind": "step",
                "step": after.step,
                "share": round(self._share(after), 6),
                "place": lesson.place,
                "length": lesson.length,
                **found.told(),
                **weighed,
                "rate": training.descent.optimiser.rate * rate,
                "norm": round(norm, 4),
                "padding": round(1 - tokens / (rows * lesson.length), 4),
                "predicted": round(predicted / tokens, 4),
                **self._pace(after, tokens),
            }
        )
        return self._after(state, after), coming

    def _pace(self, after: Progress, tokens: float) -> dict[str, object]:
        """Totals so far, and how fast this step was."""
        now = self._clock()
        spent, self.last = max(now - self.last, 1e-9), now
        speed = round(tokens / spent, 1)
        return {"tokens": after.tokens, "tokens_per_second": speed, "seconds": round(now, 3)}

    def _move(self, state: State, loaded: Loaded, counts: Sequence[float]) -> tuple[Score, float, float]:
        """Gradients and a move: how well all processes did, the norm of the gradient, and the time now."""
        try:
            sums = self.worker.backward(loaded, counts, state.progress.step)
            norm = self.worker.move(sums)
        except NotFinite as error:
            where = self.keeping.keep_broken(state, loaded)
            raise UserError(
                f"The loss or its gradient is not finite in step {state.progress.step + 1}, so the run stops. The "
                f"batch and the state before it are in {where}. {_USUAL_REASONS}"
            ) from error
        *total, clock = self.worker.processes.summed([*sums.flatten().tolist(), self._clock()])
        names = [one.name for one in loaded.lesson.objectives]
        return score(names, total[: len(names)], total[len(names) :], counts), norm, clock

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
