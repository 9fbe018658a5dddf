"""Steps of the data path on the clock: what the loader does for a step, without the device it does it for.

What arrives: a member and a prepared corpus. What leaves: tokens and processor seconds of single steps, ours and those
of the collators of `transformers` on the same rows; and the memory that the process has for itself.
What never happens here: a network, a second thread, or a member by name.
"""

from __future__ import annotations

import ctypes
import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from bench.speed.common.peer import Peer, row_features
from bench.speed.masking import Rows, closely
from unmask.core.ragged import concat_ranges
from unmask.core.rng import DrawPurpose, Key, randint, uniform
from unmask.data.corpus.corpus import Corpus
from unmask.data.corrupt.masking import MaskTokens, RandomTokens
from unmask.tasks.recipe import Recipe, Stage, Task
from unmask.train.batches.recipe_batches import SINGLE_PROCESS, RecipeBatches, RunPosition
from unmask.train.step import DeviceBatch

ROWS = 64
SEED = 1
REPEATS = 7
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Step:
    """What a step took, or a step of several on average: seconds of processor time."""

    tokens: float
    build: float
    """Which rows, fetch them, place the special tokens, corrupt."""
    collate: float
    """Tensors of it, as `Loaded.of` makes them."""
    even: float
    """The same, evened out to few shapes, as runs that are compiled or recorded wish it."""

    def speed(self, seconds: float) -> float:
        """Million tokens a second, if a step takes so long."""
        return self.tokens / seconds / 1e6


def lessons_at(recipe: Recipe, length: int, corpus: Corpus) -> RecipeBatches:
    """The lessons of a member with rows of one length and batches of `ROWS`; stages that then are equal become one."""
    shares: dict[tuple[tuple[Task, ...], tuple[float, ...]], float] = {}
    for stage in recipe.stages:
        shares[stage.tasks, stage.task_weights] = shares.get((stage.tasks, stage.task_weights), 0.0) + stage.fraction
    stages = (
        Stage(tasks=tasks, max_length=length, batch_size=ROWS, task_weights=mix, fraction=min(share, 1.0))
        for (tasks, mix), share in shares.items()
    )
    return RecipeBatches.of(replace(recipe, stages=tuple(stages)), corpus, SEED)


def moments(lessons: RecipeBatches, count: int) -> list[RunPosition]:
    """Moments all over the first pass through the corpus, and all over the stages."""
    steps = max(max(len(feed.plan) for feed in lessons.task_batches.values()) // ROWS, 1)
    key = Key.of(SEED, "moments")
    places, shares = randint(key.bits(DrawPurpose.PLACE, count), steps), uniform(key.bits(DrawPurpose.MIX, count))
    return [RunPosition(int(place), float(share)) for place, share in zip(places, shares, strict=True)]


def take(lessons: RecipeBatches, moment: RunPosition, even: bool = True) -> Step:
    """Make the lesson of a moment, as the loader does, and look at the clock in between."""
    began = time.thread_time()
    lesson = lessons.batch(moment, SINGLE_PROCESS)
    built = time.thread_time()
    DeviceBatch.of(lesson, CPU)
    collated = time.thread_time()
    if even:
        DeviceBatch.of(lesson, CPU, bucket=True)
    return Step(lesson.num_tokens, built - began, collated - built, time.thread_time() - collated)


def ours(lessons: RecipeBatches, steps: int) -> Step:
    """A step on average: the median over passes through the same steps, after one that is not counted."""
    asked = moments(lessons, steps)
    found = [_mean([take(lessons, moment) for moment in asked]) for _ in range(REPEATS + 1)][1:]
    return _each(found, statistics.median)


def theirs(lessons: RecipeBatches, peer: Peer) -> float:
    """Million tokens a second of the collator for rows of the member's first task, handed to it as ready lists.

    Members that hide single tokens are compared with its plain mode, all others with its whole-word mode.
    """
    (feed, *_), (stage, *_) = lessons.task_batches.values(), lessons.recipe.stages
    whole = not (isinstance(feed.task.corruption, MaskTokens) and isinstance(feed.task.corruption.select, RandomTokens))
    rows = Rows(stage.max_length, feed.plan, feed.corpus)
    row, _ = feed.sampler(np.arange(ROWS))
    example = rows.example(row)
    features = row_features(example, stage.max_length, closely(rows.addresses(row, example)), feed.corpus.vocab)
    taken = [_timed(lambda: peer.call(features, whole)) for _ in range(REPEATS + 1)][1:]
    return len(example.ids) / statistics.median(taken) / 1e6


def reading(lessons: RecipeBatches, steps: int) -> tuple[float, float]:
    """Of the first task: seconds a token to find which rows a step reads, and from how many shards they come."""
    feed = next(iter(lessons.task_batches.values()))
    order, met = [], []
    for moment in moments(lessons, steps):
        began = time.thread_time()
        row, _ = feed.sampler(moment.step * ROWS + np.arange(ROWS))
        took = time.thread_time() - began
        piece = concat_ranges(feed.plan.rows[row], feed.plan.rows[row + 1] - feed.plan.rows[row])
        order.append(took / int(feed.plan.length[piece].sum()))
        met.append(len(np.unique(np.searchsorted(feed.corpus.bases, feed.plan.start[piece], side="right"))))
    return statistics.median(order), statistics.fmean(met)


def own_memory() -> float:
    """Bytes in anonymous pages of this process; not a number where there is no /proc to ask."""
    gc.collect()
    try:
        lines = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return math.nan
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("Anonymous:")), math.nan)


def give_back() -> None:
    """Let the allocator hand free memory back to the system, where it can (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _timed(call: Callable[[], object]) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began


def _mean(steps: Sequence[Step]) -> Step:
    return _each(steps, statistics.fmean)


def _each(steps: Sequence[Step], fold: Callable[[Sequence[float]], float]) -> Step:
    """One step out of many, number by number."""
    tokens, build, collate, even = zip(*((one.tokens, one.build, one.collate, one.even) for one in steps), strict=True)
    return Step(fold(tokens), fold(build), fold(collate), fold(even))
