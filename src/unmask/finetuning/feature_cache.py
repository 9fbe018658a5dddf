"""What a trunk at rest makes of every row of a task, computed once and kept.

What arrives: a learner whose trunk never moves, and a course. What leaves: the same course, its rows with their states.
What never happens here: a memory that outlives its run. Small ones lie in main memory; larger ones in a file in the
folder of the run, which is removed at the end, and after a kill by whoever opens that folder next. A resumed run
computes them again: that takes as long as one epoch without a backward pass, and no file has to be trusted.

Shapes: T tokens (or first tokens) of all rows, L layers, D width.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from unmask.config.attention_pattern import PREFIX_LM
from unmask.core.io.atomic import disk_errors, temp_path
from unmask.core.ragged import concat_ranges, offsets
from unmask.core.records import Floats, Inputs, Ints
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.epoch_batches import EVAL_BATCH_SIZE, EpochBatches
from unmask.finetuning.methods.protocol import CachedLayers
from unmask.finetuning.tasks.protocol import Ticker, ignore_progress
from unmask.nets.batch.batch import Batch, collate
from unmask.train.evaluate import eval_mode
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import RunConfig

MAX_BYTES_IN_MEMORY = 1 << 30
"""The most bytes of one exercise that are kept in main memory."""


@dataclass(frozen=True, slots=True, eq=False)
class CachedFeatures:
    """The states of all rows; implements `Memory`."""

    begin: Ints
    """Offsets: the states of row i are `begin[i]:begin[i + 1]`."""
    states_TLD: Floats
    first_only: bool
    """Whether only the first token of each row is kept, because nobody reads the others."""

    def at(self, rows: Ints, inputs: Inputs) -> tuple[Inputs, tuple[Floats, ...]]:
        """The states of some rows, layer by layer, and the tokens that they belong to."""
        found_TLD = self.states_TLD[concat_ranges(self.begin[rows], np.diff(self.begin)[rows])]
        layers = tuple(found_TLD[:, layer] for layer in range(found_TLD.shape[1]))
        return (_first_tokens(inputs) if self.first_only else inputs), layers


@dataclass(frozen=True, slots=True, eq=False)
class FeatureExtractor:
    """A trunk at rest that reads rows, to remember what it makes of them."""

    learner: MultiHeadModel
    cached_layers: CachedLayers
    first_only: bool
    run: RunConfig

    def __call__(self, exercise: EncodedDataset, path: Path, tick: Ticker = ignore_progress) -> EncodedDataset:
        """The exercise with its memory. `path` is used if that is large; `tick` hears how many rows are read."""
        begin = np.arange(len(exercise.rows) + 1) if self.first_only else exercise.rows.offsets
        shape = (int(begin[-1]), self._layers, self.learner.network.config.width)
        return replace(
            exercise,
            feature_cache=CachedFeatures(begin, _store(self._read(exercise, tick), shape, path), self.first_only),
        )

    @property
    def _layers(self) -> int:
        return len(self.learner.network.blocks()) + 1 if self.cached_layers is CachedLayers.ALL else 1

    def _read(self, exercise: EncodedDataset, tick: Ticker) -> Iterator[Floats]:
        """The states of all rows, in their order."""
        at_once = max(1, EVAL_BATCH_SIZE // exercise.max_group_rows)
        for first in range(0, len(exercise), at_once):
            items = np.arange(first, min(first + at_once, len(exercise)))
            # With their truths, because some kinds of truth decide who sees whom.
            yield self._states(collate(exercise.take(items), self.run.device, PREFIX_LM))
            tick(int(exercise.group_offsets[items[-1] + 1]))

    def _states(self, batch: Batch) -> Floats:
        with eval_mode(self.learner), self.run.autocast():
            layers = self.learner.network(batch.tokens).layers[-self._layers :]
        read = [layer[batch.row_starts_B] if self.first_only else layer for layer in layers]
        found_TLD: Floats = torch.stack(read, dim=1).float().cpu().numpy()
        return found_TLD


@contextmanager
def with_feature_cache(
    batches: EpochBatches,
    learner: MultiHeadModel,
    cached_layers: CachedLayers,
    run: RunConfig,
    folder: Path,
    tick: Ticker = ignore_progress,
) -> Iterator[EpochBatches]:
    """The course with the states of all its rows, for the time of a block; as it is, if nothing is to be kept."""
    if cached_layers is CachedLayers.NOTHING:
        yield batches
        return
    learner.to(run.device)
    read = FeatureExtractor(learner, cached_layers, getattr(batches.objective, "first_only", False), run)
    paths = [temp_path(folder / f"{name}.states") for name in ("learned", "judged")]
    try:
        learned = read(batches.train, paths[0], tick)
        before = len(batches.train.rows)
        judged = read(batches.dev, paths[1], lambda done: tick(before + done))
        yield replace(batches, train=learned, dev=judged)
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _store(parts: Iterator[Floats], shape: tuple[int, ...], path: Path) -> Floats:
    """All parts as one array: in main memory, or in a file that is read where it is needed."""
    if 4 * math.prod(shape) > MAX_BYTES_IN_MEMORY:
        with disk_errors(path.parent), path.open("wb") as file:
            for part in parts:
                file.write(part.tobytes())
        return np.memmap(path, np.float32, "r", shape=shape)
    whole: Floats = np.empty(shape, dtype=np.float32)
    filled = 0
    for part in parts:
        whole[filled : filled + len(part)] = part
        filled += len(part)
    assert filled == len(whole), "there is a state for every token"
    return whole


def _first_tokens(inputs: Inputs) -> Inputs:
    """The first token of every row as a row of its own."""
    first = inputs.rows[:-1]
    rows = offsets(np.ones(len(first), dtype=np.int64))
    return Inputs(inputs.ids[first], inputs.segment[first], inputs.document[first], inputs.position[first], rows)
