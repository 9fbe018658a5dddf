"""Batches: inputs and targets of the data half as tensors.

A batch is flat, without padding; offsets are the starts of sequences. A target stays of its own class
(`core/records.py`), with tensors in the place of arrays, so a new kind of target needs nothing here.

Shapes: T tokens, B rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from unmask.config.attention_pattern import (
    FULL,
    AttentionPattern,
    LoweredRule,
    MaskKind,
    RowCoordinates,
    StreamInit,
    lower,
)
from unmask.core.ragged import positions_in_rows
from unmask.core.records import (
    HOST_ONLY,
    BatchTarget,
    Bools,
    CandidateGroups,
    Cloze,
    DecoderTarget,
    Inputs,
    InputsAndTargets,
    Ints,
    NextToken,
    PermutedTarget,
    Target,
    TokenLabels,
)
from unmask.core.rng import DrawPurpose, Key, uniform
from unmask.nets.batch.packed_sequences import PackedSequences, floats_to_device, ints_to_device, to_device
from unmask.nets.encoder import StreamInputs, TokenInputs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DecoderInputs:
    """What a decoder reads in training: the target shifted right by one token, and the rows that it rewrites."""

    tokens: TokenInputs
    source: PackedSequences


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens and the targets of their rows."""

    tokens: TokenInputs
    row_starts_B: Tensor
    """The first token of each row."""
    targets: tuple[BatchTarget, ...]
    """With tensors in the place of arrays."""
    cached_states: tuple[Tensor, ...] = ()
    """The hidden states of the tokens, layer by layer, where they are known already (features on disk)."""
    decoder: tuple[DecoderInputs, ...] = ()
    """One for each text that a decoder is trained to write; empty for other networks."""
    is_real_T: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))
    """Which tokens are text and no padding to a bucket; empty where all are."""
    continues_B: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))
    """Which rows continue the row of the same number of the batch before; empty where none does."""
    num_padding: int = field(default=0, metadata=HOST_ONLY)
    """How many of the last tokens pad the batch to a bucket."""
    row_offsets: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64), metadata=HOST_ONLY)
    """Where each row begins, and the end of the last one, without padding rows."""

    def target(self, kind: type[T], name: str = "") -> T:
        """The one target of a kind; of this name, if targets of the kind have names."""
        (found,) = (one for one in self.targets if isinstance(one, kind) and name in ("", getattr(one, "name", "")))
        return found


def collate(
    instance: InputsAndTargets, device: torch.device | str = "cpu", attention: AttentionPattern = FULL
) -> Batch:
    """Tensors of an instance, and its attention pattern in the plainest form that kernels know."""
    inputs = instance.inputs
    if len(inputs.prefix) and not any("prefix" in one.rule.coordinates_read() for one in attention.streams):
        raise ValueError("rows that state a prefix need an attention pattern that reads it, such as PREFIX_LM")
    pattern = _lower_pattern(attention)
    streams = _streams(instance, pattern, device)
    tokens = TokenInputs(
        ids_T=ints_to_device(inputs.ids, device),
        position_T=ints_to_device(_positions(inputs, pattern.isolate_documents), device),
        segment_T=ints_to_device(inputs.segment, device),
        sequences=streams[0].sequences,
        streams=() if pattern.is_single else streams,
    )
    return Batch(
        tokens=tokens,
        row_starts_B=ints_to_device(inputs.rows[:-1], device),
        targets=tuple(target_to_device(_complete(target, inputs), device) for target in instance.targets),
        cached_states=tuple(floats_to_device(state, device) for state in instance.cached_states),
        decoder=tuple(
            _decoder_inputs(one, inputs, device) for one in instance.targets if isinstance(one, DecoderTarget)
        ),
        continues_B=to_device(torch.from_numpy(inputs.continues_previous), device),
        row_offsets=inputs.rows,
    )


def target_to_device(target: T, device: torch.device | str = "cpu") -> T:
    """The target with tensors in the place of arrays: int64 for whole numbers, float32 for others."""
    changes = {}
    for one in array_fields(target):
        array = getattr(target, one.name)
        changes[one.name] = (floats_to_device if array.dtype.kind == "f" else ints_to_device)(array, device)
    made: T = replace(target, **changes)  # type: ignore[type-var]
    return made


def array_fields(target: Any) -> Iterator[Field[Any]]:  # noqa: ANN401
    """The fields of a target that hold an array, or a tensor in its place."""
    for one in fields(target):
        if not one.metadata.get("host") and isinstance(getattr(target, one.name), np.ndarray | Tensor):
            yield one


def _decoder_inputs(target: DecoderTarget, inputs: Inputs, device: torch.device | str) -> DecoderInputs:
    """Teacher forcing: each token of the target is predicted from those before it, the first from the start token."""
    begin = target.rows[:-1]
    shifted = np.roll(target.ids, 1)
    shifted[begin] = inputs.ids[inputs.rows[: len(begin)]] if target.start_id is None else target.start_id
    tokens = TokenInputs(
        ids_T=ints_to_device(shifted, device),
        position_T=ints_to_device(target.position, device),
        segment_T=ints_to_device(np.zeros_like(shifted), device),
        sequences=PackedSequences.of(torch.from_numpy(target.rows), device, MaskKind.CAUSAL),
    )
    return DecoderInputs(tokens, PackedSequences.of(torch.from_numpy(inputs.rows[: len(target.rows)]), device))


def _complete(target: Target, inputs: Inputs) -> Target:
    """The target with what only a network needs of it."""
    if isinstance(target, Cloze):
        return replace(target, uniform=_uniforms(inputs, target.positions, target.answers))
    if isinstance(target, NextToken):
        return replace(target, num_ignored=int((target.weights == 0).sum()))
    if isinstance(target, TokenLabels):
        return replace(target, lengths=tuple(np.diff(np.searchsorted(target.positions, inputs.rows)).tolist()))
    if isinstance(target, CandidateGroups):
        return replace(target, num_relevant=int((target.value > 0).sum()))
    return target


def _uniforms(inputs: Inputs, positions: Ints, answers: Ints) -> np.ndarray:
    """A draw for each chosen position, addressed by the text of its row, by what was chosen there, and by its place.

    So it is the same in any micro-batch, in any process, in an evaluation and after a resume. A row whose positions are
    chosen anew at every visit has new draws then; a static copy keeps its draws as it keeps its mask.
    """
    places, text = positions_in_rows(inputs.rows), inputs.ids.astype(np.int64)
    text[positions] = answers
    chosen = np.zeros_like(places)
    chosen[positions] = 1
    tokens = Key.of(0, "chance").fold_in(text).fold_in(2 * places + chosen)
    of_rows = Key(np.add.reduceat(tokens.state, inputs.rows[:-1]))
    row = np.searchsorted(inputs.rows, positions, side="right") - 1
    return uniform(of_rows.bits_at(DrawPurpose.TOKEN, row, places[positions]))


@dataclass(frozen=True, slots=True)
class _LoweredStream:
    """A stream of an attention pattern whose rule is lowered to a mask."""

    name: str
    reads_from: int
    is_blank: bool
    rule: LoweredRule


@dataclass(frozen=True, slots=True)
class _LoweredPattern:
    """What all batches under one attention pattern have in common."""

    isolate_documents: bool
    is_single: bool
    streams: tuple[_LoweredStream, ...]


@cache
def _lower_pattern(attention: AttentionPattern) -> _LoweredPattern:
    """Lower the rules of a pattern, once; a split that not all streams share is part of a stream's mask."""
    isolate = attention.isolate_documents
    streams = []
    for stream in attention.streams:
        lowered = lower(stream.rule)
        if lowered.isolate_documents and not isolate:
            lowered = LoweredRule(False, MaskKind.DENSE, stream.rule)
        is_blank = stream.starts_from is StreamInit.BLANK
        streams.append(_LoweredStream(stream.name, attention.index_of(stream.reads_from), is_blank, lowered))
    return _LoweredPattern(isolate, attention.is_single, tuple(streams))


def _streams(
    instance: InputsAndTargets, pattern: _LoweredPattern, device: torch.device | str
) -> tuple[StreamInputs, ...]:
    """The sequences of every stream of the pattern."""
    offsets = torch.from_numpy(_offsets(instance.inputs, pattern.isolate_documents))
    return tuple(
        StreamInputs(
            name=stream.name,
            reads_from=stream.reads_from,
            is_blank=stream.is_blank,
            sequences=_sequences(instance, offsets, stream.rule, device),
        )
        for stream in pattern.streams
    )


def _sequences(
    instance: InputsAndTargets, offsets: Tensor, lowered: LoweredRule, device: torch.device | str
) -> PackedSequences:
    """Sequences under a lowered rule."""
    match lowered.mask_kind:
        case MaskKind.PREFIX_LM if not len(instance.inputs.prefix):
            return PackedSequences.of(offsets, device)  # a row is all prefix
        case MaskKind.PREFIX_LM:
            lengths = np.add.reduceat(_prefix(instance.inputs).astype(np.int32), offsets[:-1].numpy())
            return PackedSequences.of(offsets, device, MaskKind.PREFIX_LM, torch.from_numpy(lengths))
        case MaskKind.DENSE:
            row = _coordinates(instance).map(lambda one: torch.from_numpy(np.ascontiguousarray(one)))
            return PackedSequences.of(offsets, device, MaskKind.DENSE, dense_rule=lowered.rule, coordinates=row)
    return PackedSequences.of(offsets, device, lowered.mask_kind, window=lowered.window)


def _coordinates(instance: InputsAndTargets) -> RowCoordinates:
    """What rules read of every token; a factorization order is that of the target."""
    inputs = instance.inputs
    orders = [target.rank for target in instance.targets if isinstance(target, PermutedTarget)]
    rank = orders[0] if orders else np.full(len(inputs.ids), -1)
    index = positions_in_rows(inputs.rows)
    prefix = _prefix(inputs)
    return RowCoordinates(index, inputs.document.astype(np.int32), prefix, rank.astype(np.int32))


def _prefix(inputs: Inputs) -> Bools:
    """Which tokens belong to the prefix of their row; a row for which none is stated is all prefix."""
    lengths = np.diff(inputs.rows)
    lengths[: len(inputs.prefix)] = inputs.prefix
    return positions_in_rows(inputs.rows) < np.repeat(lengths, np.diff(inputs.rows))


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
