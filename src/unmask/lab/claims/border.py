"""The border probe: a span-boundary head trained on a frozen network, new for every network.

The head is SpanBERT's (section 3.2), freshly initialized, so that networks with and without such a head are compared by
their states alone. Shapes: T tokens, D width.
"""

from __future__ import annotations

import torch

from unmask.core.records import InputsAndTargets
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.row_plan import DynamicMasking
from unmask.members import member
from unmask.nets.batch.batch import collate
from unmask.nets.batch.transfer import batch_to_device
from unmask.nets.model import EncoderWithHeads
from unmask.objectives.heads.common import LossSum
from unmask.objectives.sbo import SBO
from unmask.tasks.batches import TaskBatches

NUM_STEPS, BATCH_SIZE = 300, 32
"""The training of the head."""
LR = 1e-3
NUM_EVAL_BATCHES = 20
"""Batches of held-out text."""


def border_scores(
    model: EncoderWithHeads, device: torch.device, train: Corpus, heldout: Corpus, length: int
) -> dict[str, float]:
    """Train the head, then return its accuracy and its loss on hidden tokens of held-out text."""
    for weight in model.parameters():
        weight.requires_grad_(False)
    torch.manual_seed(0)
    task = member("spanbert").stages[0].tasks[0]
    train_batch, eval_batch = (
        TaskBatches.for_task(task, corpus, length, DynamicMasking(), 0) for corpus in (train, heldout)
    )
    head = SBO().build_head(model.network).to(device)
    weights = [weight for weight in head.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=LR, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(NUM_STEPS):
        for group in optimizer.param_groups:
            group["lr"] = LR * (1 - step / NUM_STEPS)
        term = _loss(model, head, train_batch(step, BATCH_SIZE), device)
        if term.count:
            (term.total / term.count).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
    with torch.no_grad():
        terms = [_loss(model, head, eval_batch(step, BATCH_SIZE), device) for step in range(NUM_EVAL_BATCHES)]
    count = max(sum(term.count for term in terms), 1)
    return {
        "border accuracy": float(sum(term.correct for term in terms)) / count,
        "border loss": float(sum(term.total for term in terms)) / count,
    }


def _loss(model: EncoderWithHeads, head: torch.nn.Module, example: InputsAndTargets, device: torch.device) -> LossSum:
    batch = batch_to_device(SBO().prepare(collate(example)), device)
    with torch.no_grad():
        states = model.network(batch.tokens)
    found: LossSum = head(states, batch)
    return found
