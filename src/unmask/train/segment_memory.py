"""Segment-level recurrence: the memory that a network carries from step to step (Dai et al., 2019, section 3.2).

Row b of a step continues row b of the step before, so the memory of a step has one entry for each row of this process,
in order, whatever micro-batches the rows are cut into. States in memory have no gradient. The memory of a row that
continues nothing is emptied. Checkpoints hold the memory, so a resumed run computes the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unmask.nets.backbone import Backbone
from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import EncoderMemory, HiddenStates

_PREFIX = "segment_memory/"
"""What the names of its tensors in a checkpoint begin with."""


@dataclass(slots=True)
class MemorySlot:
    """The memory of the rows of one micro-batch: a forward pass reads it, and leaves that of the next segment."""

    memory: EncoderMemory

    def update(self, states: HiddenStates, batch: Batch) -> None:
        """Append the states of a segment and drop the oldest ones."""
        self.memory = self.memory.extended(states, batch.tokens.sequences)


@dataclass(slots=True)
class SegmentMemory:
    """The memory of all rows of this process."""

    network: Backbone
    max_length: int = 0
    """The row length of the stage that the memory is of: another stage has other streams."""
    memory: EncoderMemory | None = None

    def slots(self, batches: Sequence[Batch], max_length: int) -> tuple[MemorySlot | None, ...]:
        """The memory of each micro-batch, emptied where rows continue nothing; None for a network without memory."""
        if not self.network.memory_length:
            return (None,) * len(batches)
        rows = [len(batch.row_starts_B) for batch in batches]
        if self.memory is None or len(self.memory.valid_SM) != sum(rows) or self.max_length != max_length:
            self.memory = self.network.empty_memory(sum(rows), batches[0].row_starts_B.device)
        self.max_length = max_length
        parts = zip(
            *(torch.split(layer, rows) for layer in (*self.memory.layers_SMD, self.memory.valid_SM)), strict=True
        )
        return tuple(
            MemorySlot(EncoderMemory(tuple(layers), valid).reset(_continues(batch)))
            for (*layers, valid), batch in zip(parts, batches, strict=True)
        )

    def keep(self, slots: Sequence[MemorySlot | None]) -> None:
        """Take over what the forward passes of a step have left."""
        found = [slot.memory for slot in slots if slot]
        if found:
            layers = tuple(map(torch.cat, zip(*(one.layers_SMD for one in found), strict=True)))
            self.memory = EncoderMemory(layers, torch.cat([one.valid_SM for one in found]))

    def state_tensors(self) -> dict[str, Tensor]:
        """The memory as tensors for a checkpoint; none before the first step and without memory."""
        if self.memory is None:
            return {}
        layers = {f"{_PREFIX}{number}": layer for number, layer in enumerate(self.memory.layers_SMD)}
        length = torch.tensor(self.max_length)
        return {**layers, f"{_PREFIX}valid": self.memory.valid_SM, f"{_PREFIX}max_length": length}

    def load_state_tensors(self, saved: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Take the memory out of the tensors of a checkpoint; returns the others."""
        mine = {name.removeprefix(_PREFIX): one for name, one in saved.items() if name.startswith(_PREFIX)}
        if mine:
            device = self.network.token_embedding.weight.device
            layers = tuple(mine[str(number)].to(device) for number in range(len(mine) - 2))
            self.memory = EncoderMemory(layers, mine["valid"].to(device))
            self.max_length = int(mine["max_length"])
        return {name: one for name, one in saved.items() if not name.startswith(_PREFIX)}


def _continues(batch: Batch) -> Tensor:
    """Which rows continue the row of the same number in the step before."""
    return batch.continues_B if len(batch.continues_B) else torch.zeros_like(batch.row_starts_B, dtype=torch.bool)
