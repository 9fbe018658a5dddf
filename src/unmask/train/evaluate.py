"""Evaluation on held-out rows: mean loss and accuracy of each objective. Dropout is off and the masks are fixed."""

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
    """One pass over the batches, shared by all processes."""
    names = list(dict.fromkeys(one.name for step_batch in batches for one in step_batch.objectives))
    sums = {name: [0.0, 0.0, 0.0] for name in names}
    with eval_mode(model):
        memory = SegmentMemory(model.network)
        for step_batch in batches[dist.rank :: dist.world_size]:
            found_batches = DeviceBatch.of(step_batch, run.device).batches
            slots = memory.slots(found_batches, step_batch.max_length)
            for batch, slot in zip(found_batches, slots, strict=True):
                with run.autocast():
                    terms = model(batch, step_batch.objectives, slot)
                for one, term in zip(step_batch.objectives, terms, strict=True):
                    found = (float(term.total), float(term.correct), float(term.count))
                    sums[one.name] = [old + new for old, new in zip(sums[one.name], found, strict=True)]
            memory.keep(slots)
    flat = dist.all_reduce_sum([number for name in names for number in sums[name]])
    return compute_metrics(names, flat[0::3], flat[1::3], flat[2::3])


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """A module in evaluation mode without gradients, for the time of a block."""
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(training)
