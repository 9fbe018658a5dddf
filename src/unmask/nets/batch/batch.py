"""Instances as tensors: what crosses from the data half to the network half.

What arrives: an `Instance` in numpy. What leaves: a `Batch` on the device where the network lives.
What never happens here: padding. A batch is flat, and borders say which tokens see each other.

Shapes: T tokens, B rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from unmask.core.ragged import positions_in_rows
from unmask.core.records import Inputs, InputsAndTargets
from unmask.nets.batch.packed_sequences import HOST_ONLY, MaskKind, PackedSequences, floats_to_device, ints_to_device
from unmask.nets.batch.targets import MaskedTargets, TargetTensors, targets_to_tensors
from unmask.nets.encoder import TokenInputs


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens, and what is asked about them."""

    tokens: TokenInputs
    row_starts_B: Tensor
    """Where each row begins: the place of its [CLS]."""
    targets: tuple[TargetTensors, ...]
    cached_states: tuple[Tensor, ...] = ()
    """What the trunk makes of the tokens, where that is known already."""
    is_real_T: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))
    """Which tokens are of the text, where others only fill the batch up (`bucketing.py`); empty where all are."""
    num_padding: int = field(default=0, metadata=HOST_ONLY)
    """On the host: how many of the last tokens only fill the batch up."""


def collate(instance: InputsAndTargets, device: torch.device | str = "cpu", isolate_documents: bool = False) -> Batch:
    """Tensors of an instance. `apart` keeps the documents of a row from seeing each other."""
    inputs = instance.inputs
    tokens = TokenInputs(
        ids_T=ints_to_device(inputs.ids, device),
        position_T=ints_to_device(_positions(inputs, isolate_documents), device),
        segment_T=ints_to_device(inputs.segment, device),
        sequences=_borders(inputs, isolate_documents, device),
    )
    answers = tuple(targets_to_tensors(target, inputs, device) for target in instance.targets)
    states = tuple(floats_to_device(state, device) for state in instance.cached_states)
    return Batch(tokens, ints_to_device(inputs.rows[:-1], device), answers, states)


def masked_targets(batch: Batch) -> MaskedTargets:
    """The one cloze that a batch asks."""
    (cloze,) = (answers for answers in batch.targets if isinstance(answers, MaskedTargets))
    return cloze


def _borders(inputs: Inputs, apart: bool, device: torch.device | str) -> PackedSequences:
    """Who sees whom: all of a row, or of a document; or a source itself, and what stands behind it also its past."""
    offsets = torch.from_numpy(_offsets(inputs, apart))
    if not len(inputs.prefix):
        return PackedSequences.of(offsets, device)
    assert not apart, "a source with a text behind it is one document"
    prefix = np.diff(inputs.rows)
    prefix[: len(inputs.prefix)] = inputs.prefix
    return PackedSequences.of(offsets, device, MaskKind.PREFIX_LM, torch.from_numpy(prefix))


def _offsets(inputs: Inputs, apart: bool) -> np.ndarray:
    if not apart:
        return inputs.rows.astype(np.int32)
    changes = np.flatnonzero(np.diff(inputs.document)) + 1
    return np.unique(np.concatenate([inputs.rows, changes])).astype(np.int32)


def _positions(inputs: Inputs, apart: bool) -> np.ndarray:
    """Positions begin again with every document that is a world of its own."""
    if not apart:
        return inputs.position
    return positions_in_rows(_offsets(inputs, apart).astype(np.int64))
