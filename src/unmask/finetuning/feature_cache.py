"""Feature cache: the states of a frozen encoder for all rows of a task, computed once.

Small caches are kept in memory, larger ones in a memory-mapped file in the run folder that is deleted at the end. A
resumed run computes the cache again, which takes one epoch without a backward pass.

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
from unmask.finetuning.data.encode import Ticker, ignore_progress
from unmask.finetuning.data.encoded_dataset import EncodedDataset
from unmask.finetuning.epoch_batches import EVAL_BATCH_SIZE, EpochBatches
from unmask.finetuning.methods.protocol import CachedLayers
from unmask.nets.batch.batch import Batch, collate
from unmask.train.evaluate import eval_mode
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import RunConfig

MAX_BYTES_IN_MEMORY = 1 << 30
"""Larger caches are kept in a file."""


@dataclass(frozen=True, slots=True, eq=False)
class CachedFeatures:
    """The cached states of all rows; implements `FeatureCache`."""

    begin: Ints
    """Offsets: the states of row i are `begin[i]:begin[i + 1]`."""
    states_TLD: Floats
    first_only: bool
    """Whether only the first token of each row is cached, because the head reads no other."""

    def at(self, rows: Ints, inputs: Inputs) -> tuple[Inputs, tuple[Floats, ...]]:
        """The states of some rows, layer by layer, and their tokens."""
        found_TLD = self.states_TLD[concat_ranges(self.begin[rows], np.diff(self.begin)[rows])]
        layers = tuple(found_TLD[:, layer] for layer in range(found_TLD.shape[1]))
        return (_first_tokens(inputs) if self.first_only else inputs), layers


@dataclass(frozen=True, slots=True, eq=False)
class FeatureExtractor:
    """Runs a frozen encoder over a dataset and caches its states."""

    learner: MultiHeadModel
    cached_layers: CachedLayers
    first_only: bool
    run: RunConfig

    def __call__(self, dataset: EncodedDataset, path: Path, tick: Ticker = ignore_progress) -> EncodedDataset:
        """The dataset with its cache, in a file at `path` if it is large."""
        begin = np.arange(len(dataset.rows) + 1) if self.first_only else dataset.rows.offsets
        shape = (int(begin[-1]), self._layers, self.learner.network.config.width)
        return replace(
            dataset,
            feature_cache=CachedFeatures(begin, _store(self._read(dataset, tick), shape, path), self.first_only),
        )

    @property
    def _layers(self) -> int:
        return len(self.learner.network.blocks()) + 1 if self.cached_layers is CachedLayers.ALL else 1

    def _read(self, dataset: EncodedDataset, tick: Ticker) -> Iterator[Floats]:
        """The states of all rows, in order."""
        at_once = max(1, EVAL_BATCH_SIZE // dataset.max_group_rows)
        for first in range(0, len(dataset), at_once):
            items = np.arange(first, min(first + at_once, len(dataset)))
            # with targets, because some target types decide the attention mask
            yield self._states(collate(dataset.take(items), self.run.device, PREFIX_LM))
            tick(int(dataset.group_offsets[items[-1] + 1]))

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
    """The batches with cached features inside the `with` block; unchanged if nothing is cached."""
    if cached_layers is CachedLayers.NOTHING:
        yield batches
        return
    learner.to(run.device)
    read = FeatureExtractor(learner, cached_layers, getattr(batches.objective, "first_only", False), run)
    paths = [temp_path(folder / f"{name}.states") for name in ("train", "dev")]
    try:
        train = read(batches.train, paths[0], tick)
        before = len(batches.train.rows)
        dev = read(batches.dev, paths[1], lambda done: tick(before + done))
        yield replace(batches, train=train, dev=dev)
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _store(parts: Iterator[Floats], shape: tuple[int, ...], path: Path) -> Floats:
    """All parts as one array: in memory, or as a memory-mapped file."""
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
    assert filled == len(whole), "every token has a state"
    return whole


def _first_tokens(inputs: Inputs) -> Inputs:
    """The first token of every row as a row of its own."""
    first = inputs.rows[:-1]
    rows = offsets(np.ones(len(first), dtype=np.int64))
    return Inputs(inputs.ids[first], inputs.segment[first], inputs.document[first], inputs.position[first], rows)
