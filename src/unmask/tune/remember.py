"""What a trunk at rest makes of every row of a task, computed once and kept.

What arrives: a learner whose trunk never moves, and a course. What leaves: the same course, its rows with their states.
What never happens here: a memory that outlives its run. Small ones lie in main memory; larger ones in a file in the
folder of the run, which is removed at the end, and after a kill by whoever opens that folder next. A resumed run
computes them again: that takes as long as one epoch without a backward pass, and no file has to be trusted.

Shapes: T tokens (or first tokens) of all rows, L layers, D width.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from unmask.nets.batch import Batch, collate
from unmask.ragged import offsets, ranges
from unmask.records import Floats, Inputs, Ints
from unmask.shards.files import disk_space, part_of
from unmask.train.learner import Learner
from unmask.train.run import Run
from unmask.train.trial import still
from unmask.tune.course import JUDGED_AT_ONCE, Labelled
from unmask.tune.exercise import Exercise
from unmask.tune.output import Ticker, silent
from unmask.tune.policy import Recall

IN_MEMORY = 1 << 30
"""The most bytes of one exercise that are kept in main memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """The states of all rows; implements `Memory`."""

    begin: Ints
    """Offsets: the states of row i are `begin[i]:begin[i + 1]`."""
    states_TLD: Floats
    first_only: bool
    """Whether only the first token of each row is kept, because nobody reads the others."""

    def at(self, rows: Ints, inputs: Inputs) -> tuple[Inputs, tuple[Floats, ...]]:
        """The states of some rows, layer by layer, and the tokens that they belong to."""
        found_TLD = self.states_TLD[ranges(self.begin[rows], np.diff(self.begin)[rows])]
        layers = tuple(found_TLD[:, layer] for layer in range(found_TLD.shape[1]))
        return (_first_tokens(inputs) if self.first_only else inputs), layers


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """A trunk at rest that reads rows, to remember what it makes of them."""

    learner: Learner
    recall: Recall
    first_only: bool
    run: Run

    def __call__(self, exercise: Exercise, path: Path, tick: Ticker = silent) -> Exercise:
        """The exercise with its memory. `path` is used if that is large; `tick` hears how many rows are read."""
        begin = np.arange(len(exercise.rows) + 1) if self.first_only else exercise.rows.rows
        shape = (int(begin[-1]), self._layers, self.learner.trunk.trunk.width)
        return replace(
            exercise, memory=Remembered(begin, _kept(self._read(exercise, tick), shape, path), self.first_only)
        )

    @property
    def _layers(self) -> int:
        return len(self.learner.trunk.blocks()) + 1 if self.recall is Recall.ALL else 1

    def _read(self, exercise: Exercise, tick: Ticker) -> Iterator[Floats]:
        """The states of all rows, in their order."""
        at_once = max(1, JUDGED_AT_ONCE // exercise.most)
        for first in range(0, len(exercise), at_once):
            items = np.arange(first, min(first + at_once, len(exercise)))
            # With their truths, because some kinds of truth decide who sees whom.
            yield self._states(collate(exercise.at(items), self.run.device))
            tick(int(exercise.begin[items[-1] + 1]))

    def _states(self, batch: Batch) -> Floats:
        with still(self.learner), self.run.autocast():
            layers = self.learner.trunk(batch.tokens).layers[-self._layers :]
        read = [layer[batch.first_B] if self.first_only else layer for layer in layers]
        found_TLD: Floats = torch.stack(read, dim=1).float().cpu().numpy()
        return found_TLD


@contextmanager
def remembered(
    course: Labelled, learner: Learner, recall: Recall, run: Run, folder: Path, tick: Ticker = silent
) -> Iterator[Labelled]:
    """The course with the states of all its rows, for the time of a block; as it is, if nothing is to be kept."""
    if recall is Recall.NOTHING:
        yield course
        return
    learner.to(run.device)
    read = Reader(learner, recall, getattr(course.objective, "first_only", False), run)
    paths = [part_of(folder / f"{name}.states") for name in ("learned", "judged")]
    try:
        learned = read(course.learned, paths[0], tick)
        before = len(course.learned.rows)
        judged = read(course.judged, paths[1], lambda done: tick(before + done))
        yield replace(course, learned=learned, judged=judged)
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _kept(parts: Iterator[Floats], shape: tuple[int, ...], path: Path) -> Floats:
    """All parts as one array: in main memory, or in a file that is read where it is needed."""
    if 4 * math.prod(shape) > IN_MEMORY:
        with disk_space(path.parent), path.open("wb") as file:
            for part in parts:
                file.write(part.tobytes())
        return np.memmap(path, np.float32, "r", shape=shape)
    whole: Floats = np.empty(shape, dtype=np.float32)
    filled = 0
    for part in parts:
        whole[filled : filled + len(part)] = part
        filled += len(part)
    assert filled == len(whole), "there is a state for every token"
    return whole


def _first_tokens(inputs: Inputs) -> Inputs:
    """The first token of every row as a row of its own."""
    first = inputs.rows[:-1]
    rows = offsets(np.ones(len(first), dtype=np.int64))
    return Inputs(inputs.ids[first], inputs.segment[first], inputs.document[first], inputs.position[first], rows)
