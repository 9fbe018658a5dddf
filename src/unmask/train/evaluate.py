"""The trial: how a learner does on rows that it never learns from.

What arrives: a learner and the lessons of a trial. What leaves: mean loss and share of right answers by objective.
What never happens here: a draw. Dropout is off and the masks are always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from unmask.train.batches.recipe_batches import StepBatch
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.segment_memory import SegmentMemory
from unmask.train.step import DeviceBatch, Metrics, compute_metrics


def evaluate(model: MultiHeadModel, batches: Sequence[StepBatch], run: RunConfig, dist: DistContext) -> Metrics:
    """One pass over the lessons, shared by all processes."""
    names = list(dict.fromkeys(one.name for lesson in batches for one in lesson.objectives))
    sums = {name: [0.0, 0.0, 0.0] for name in names}
    with eval_mode(model):
        memory = SegmentMemory(model.network)
        for lesson in batches[dist.rank :: dist.world_size]:
            found_batches = DeviceBatch.of(lesson, run.device).batches
            slots = memory.slots(found_batches, lesson.max_length)
            for batch, slot in zip(found_batches, slots, strict=True):
                with run.autocast():
                    terms = model(batch, lesson.objectives, slot)
                for one, term in zip(lesson.objectives, terms, strict=True):
                    found = (float(term.total), float(term.correct), float(term.count))
                    sums[one.name] = [old + new for old, new in zip(sums[one.name], found, strict=True)]
            memory.keep(slots)
    flat = dist.all_reduce_sum([number for name in names for number in sums[name]])
    return compute_metrics(names, flat[0::3], flat[1::3], flat[2::3])


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """A module that neither drops nor remembers, for the time of a block."""
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(training)
