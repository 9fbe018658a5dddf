"""What the two tokens around a hidden span know of it: a head over a network at rest, the same for every network.

What arrives: a network, text to learn from and text to be judged by. What leaves: how often a hidden token is said.
What never happens here: a change of the network. The head is SpanBERT's own, drawn anew, so that a network which had
such a head has no advantage but what its states hold.

Shapes: T tokens, D width.
"""

from __future__ import annotations

import torch

from unmask.core.records import InputsAndTargets
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.sampler import DynamicMasking
from unmask.members import member
from unmask.nets.batch.batch import collate
from unmask.nets.batch.transfer import batch_to_device
from unmask.nets.model import EncoderWithHeads
from unmask.objectives.heads.common import LossSum
from unmask.objectives.sbo import SBO
from unmask.tasks.batches import TaskBatches

STEPS, ROWS = 300, 32
"""What the head learns from."""
RATE = 1e-3
JUDGED = 20
"""Batches of held-out text."""


def border(
    model: EncoderWithHeads, device: torch.device, learn: Corpus, judge: Corpus, length: int
) -> dict[str, float]:
    """Train the head, then the share of hidden tokens that it says right, and its loss."""
    for weight in model.parameters():
        weight.requires_grad_(False)
    torch.manual_seed(0)
    task = member("spanbert").stages[0].tasks[0]
    teach, ask = (TaskBatches.for_task(task, corpus, length, DynamicMasking(), 0) for corpus in (learn, judge))
    head = SBO().build_head(model.config, model.network.embed.token).to(device)
    weights = [weight for weight in head.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - step / STEPS)
        term = _say(model, head, teach(step, ROWS), device)
        if term.count:
            (term.total / term.count).backward()
            optimiser.step()
            optimiser.zero_grad()
    with torch.no_grad():
        terms = [_say(model, head, ask(step, ROWS), device) for step in range(JUDGED)]
    count = max(sum(term.count for term in terms), 1)
    right, loss = (float(sum(getattr(term, name) for term in terms)) / count for name in ("right", "total"))
    return {"border right": right, "border loss": loss}


def _say(model: EncoderWithHeads, head: torch.nn.Module, instance: InputsAndTargets, device: torch.device) -> LossSum:
    batch = batch_to_device(SBO().prepare(collate(instance)), device)
    with torch.no_grad():
        states = model.network(batch.tokens)
    found: LossSum = head(states, batch)
    return found
