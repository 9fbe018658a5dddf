"""A few rows with holes, and a small learner that guesses ahead of its trunk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from unmask.nets.batch import Batch, collate
from unmask.nets.trunk import Trunk
from unmask.objectives.guess import Guess
from unmask.objectives.part import Taught
from unmask.objectives.replaced import Replaced
from unmask.ragged import offsets, within
from unmask.records import Cloze, Inputs, Instance, Spans
from unmask.train.learner import Learner

torch.set_num_threads(1)

MASK, SIZE, POSITIONS = 3, 40, 16
TRUNK = Trunk(depth=2, width=32, heads=4, inner=64, dropout=0.0, attention_dropout=0.0, spread=0.3)
ROWS = (
    [1, 10, 11, 12, 13, 14, 2],
    [1, 20, 21, 22, 2],
    [1, 30, 31, 32, 33, 34, 35, 36, 2],
)
HOLES = ((2, 4), (1,), (3, 4, 7))


def instance(rows: Sequence[Sequence[int]] = ROWS, holes: Sequence[Sequence[int]] = HOLES) -> Instance:
    """These rows with a mask in every hole; the first hole of each row shows its token as it is."""
    borders = offsets(np.array([len(row) for row in rows]))
    ids = np.concatenate([np.array(row, dtype=np.int32) for row in rows])
    flat = [np.array(some, dtype=np.int64) + start for some, start in zip(holes, borders, strict=False)]
    positions = np.concatenate(flat)
    shown = ids.copy()
    shown[np.concatenate([some[1:] for some in flat])] = MASK
    zeros = np.zeros(len(ids))
    inputs = Inputs(shown, zeros.astype(np.uint8), zeros.astype(np.int32), within(borders), borders)
    return Instance(inputs, (Cloze(positions, ids[positions], Spans(positions, positions + 1)),))


def batch() -> Batch:
    return collate(instance())


def original() -> torch.Tensor:
    return torch.tensor([token for row in ROWS for token in row])


def learner(*objectives: Taught, trunk: Trunk = TRUNK, seed: int = 0) -> Learner:
    """A learner with drawn weights; of ELECTRA's objectives, if none are given."""
    made = Learner(trunk, objectives or (Guess(), Replaced()), SIZE, POSITIONS)
    made.draw(seed)
    return made
