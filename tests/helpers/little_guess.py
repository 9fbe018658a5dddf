"""A few rows with holes, and a small learner that guesses ahead of its trunk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from unmask.config.network import TransformerConfig
from unmask.core.ragged import offsets, positions_in_rows
from unmask.core.records import Cloze, Inputs, InputsAndTargets, Spans
from unmask.nets.batch.batch import Batch, collate
from unmask.objectives.generator import Generator
from unmask.objectives.protocol import Objective
from unmask.objectives.rtd import RTD
from unmask.train.multi_head_model import MultiHeadModel

torch.set_num_threads(1)

MASK, SIZE, POSITIONS = 3, 40, 16
TRUNK = TransformerConfig(depth=2, width=32, heads=4, ffn_width=64, dropout=0.0, attention_dropout=0.0, init_std=0.3)
ROWS = (
    [1, 10, 11, 12, 13, 14, 2],
    [1, 20, 21, 22, 2],
    [1, 30, 31, 32, 33, 34, 35, 36, 2],
)
HOLES = ((2, 4), (1,), (3, 4, 7))


def instance(rows: Sequence[Sequence[int]] = ROWS, holes: Sequence[Sequence[int]] = HOLES) -> InputsAndTargets:
    """These rows with a mask in every hole; the first hole of each row shows its token as it is."""
    borders = offsets(np.array([len(row) for row in rows]))
    ids = np.concatenate([np.array(row, dtype=np.int32) for row in rows])
    flat = [np.array(some, dtype=np.int64) + start for some, start in zip(holes, borders, strict=False)]
    positions = np.concatenate(flat)
    shown = ids.copy()
    shown[np.concatenate([some[1:] for some in flat])] = MASK
    zeros = np.zeros(len(ids))
    inputs = Inputs(shown, zeros.astype(np.uint8), zeros.astype(np.int32), positions_in_rows(borders), borders)
    return InputsAndTargets(inputs, (Cloze(positions, ids[positions], Spans(positions, positions + 1)),))


def batch() -> Batch:
    return collate(instance())


def original() -> torch.Tensor:
    return torch.tensor([token for row in ROWS for token in row])


def learner(*objectives: Objective, trunk: TransformerConfig = TRUNK, seed: int = 0) -> MultiHeadModel:
    """A learner with drawn weights; of ELECTRA's objectives, if none are given."""
    made = MultiHeadModel(trunk, objectives or (Generator(), RTD()), SIZE, POSITIONS)
    made.init_weights(seed)
    return made
