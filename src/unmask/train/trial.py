"""The trial: how a learner does on rows that it never learns from.

What arrives: a learner and the lessons of a trial. What leaves: mean loss and share of right answers by objective.
What never happens here: a draw. Dropout is off and the masks are always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from unmask.train.course import Lesson
from unmask.train.learner import Learner
from unmask.train.processes import Processes
from unmask.train.run import Run
from unmask.train.step import Loaded, Score, score


def judge(learner: Learner, lessons: Sequence[Lesson], run: Run, processes: Processes) -> Score:
    """One pass over the lessons, shared by all processes."""
    names = list(dict.fromkeys(one.name for lesson in lessons for one in lesson.objectives))
    sums = {name: [0.0, 0.0, 0.0] for name in names}
    with still(learner):
        for lesson in lessons[processes.rank :: processes.world]:
            for batch in Loaded.of(lesson, run.device).batches:
                with run.autocast():
                    terms = learner(batch, lesson.objectives)
                for one, term in zip(lesson.objectives, terms, strict=True):
                    found = (float(term.total), float(term.right), float(term.count))
                    sums[one.name] = [old + new for old, new in zip(sums[one.name], found, strict=True)]
    flat = processes.summed([number for name in names for number in sums[name]])
    return score(names, flat[0::3], flat[1::3], flat[2::3])


@contextmanager
def still(module: nn.Module) -> Iterator[None]:
    """A module that neither drops nor remembers, for the time of a block."""
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(training)
