"""The loss of a masked language model of `transformers` on held-out rows, for `quality.py`.

What arrives: a network on its device, and rows that their collator has masked. What leaves: the mean over all tokens
that were asked for. What never happens here: learning.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from bench.speed.common.both_sides import Theirs
from bench.speed.common.rows import Rows, collator_of, joined, unmasked
from unmask.data.corpus.corpus import Corpus

Curve = list[tuple[float, float]]
"""Seconds and held-out loss."""
MOST, AT_ONCE, SEED = 1024, 64, 1
"""How many rows that run on are judged, at the most and at once; and where their masks begin."""


def running_on(data: Path, held_out: Corpus, length: int) -> list[dict[str, Tensor]]:
    """Held-out text in rows that run on across documents, as theirs learns from it, with masks of their collator."""
    rows = Rows(joined(held_out, length)[:MOST])
    if not len(rows):
        raise SystemExit(f"quality.py: the held-out text of {data} fills no row of {length} tokens; take a larger one")
    torch.manual_seed(SEED)
    return [unmasked(batch) for batch in DataLoader(rows, AT_ONCE, collate_fn=collator_of(data))]


@torch.no_grad()
def judged(theirs: Theirs, trial: list[dict[str, Tensor]]) -> float:
    """Mean loss over all chosen tokens of the held-out rows."""
    theirs.model.eval()
    total = count = 0.0
    for batch in trial:
        asked = int((batch["labels"] >= 0).sum())
        with theirs.run.autocast():
            total += float(theirs.model(**theirs.load(batch)).loss) * asked
        count += asked
    theirs.model.train()
    return total / count
