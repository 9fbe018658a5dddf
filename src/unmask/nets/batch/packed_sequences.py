"""Packed sequences of a flat batch: offsets (cu_seqlens), the attention mask inside one, the padded grid.

A token attends inside its own sequence only. Kernels for variable lengths read the offsets, others the padded grid.
No padded place is ever a query whose result is kept.

Shapes: T tokens of the batch, S sequences, L the longest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from unmask.config.attention_pattern import (
    And,
    AttentionRule,
    Causal,
    Full,
    MaskKind,
    PrefixLM,
    RowCoordinates,
    SlidingWindow,
)

__all__ = ["MaskKind", "PackedSequences", "pad", "padded_indices", "to_device", "unpad"]


@dataclass(frozen=True, slots=True)
class PackedSequences:
    """Sequences of a flat batch; no token attends outside its own."""

    cu_seqlens_S1: Tensor
    """int32, where each sequence begins; one more for the end."""
    padded_index_T: Tensor
    """int64, the place of each token in the padded grid. Found on the host, so that no layer waits for the device."""
    max_seqlen: int
    is_uniform: bool
    """Whether all sequences are equally long, so that the flat batch is a grid already."""
    mask_kind: MaskKind = MaskKind.FULL
    prefix_lengths_S: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int32))
    """int32, how many tokens at the start of each sequence are its prefix; empty unless the mask is PREFIX_LM."""
    window: int = 0
    """The radius of a window; 0 for every other mask."""
    dense_rule: AttentionRule = Full()
    """The rule of a DENSE mask."""
    coordinates: RowCoordinates | None = None
    """What a DENSE mask reads: the coordinates of every token."""

    @staticmethod
    def of(
        cu_seqlens: Sequence[int] | Tensor,
        device: torch.device | str = "cpu",
        mask_kind: MaskKind = MaskKind.FULL,
        prefix_lengths: Sequence[int] | Tensor = (),
        window: int = 0,
        dense_rule: AttentionRule = Full(),  # noqa: B008
        coordinates: RowCoordinates | None = None,
    ) -> PackedSequences:
        """Sequences from offsets on the host, with what their mask needs: prefix lengths, a radius, or a rule."""
        host, prefix = (
            torch.as_tensor(cu_seqlens, dtype=torch.int32),
            torch.as_tensor(prefix_lengths, dtype=torch.int32),
        )
        if len(prefix) != (len(host) - 1 if mask_kind is MaskKind.PREFIX_LM else 0):
            raise ValueError(f"{len(host) - 1} sequences under a {mask_kind} mask, but {len(prefix)} prefixes")
        if window < 0 or (window and mask_kind not in (MaskKind.SLIDING_WINDOW, MaskKind.CAUSAL_WINDOW)):
            raise ValueError(f"a radius of {window} under a {mask_kind} mask; it is 0 or more, and 0 without a window")
        if (coordinates is not None) != (mask_kind is MaskKind.DENSE):
            raise ValueError(f"coordinates are for a dense mask alone, and it needs them; found a {mask_kind} mask")
        lengths = host.diff()
        if len(prefix) and not ((prefix >= 0) & (prefix <= lengths)).all():
            raise ValueError("a prefix is longer than its sequence")
        longest = int(lengths.max())
        place_T = padded_indices(host, longest)
        equal = bool((lengths == longest).all())
        return PackedSequences(
            cu_seqlens_S1=to_device(host, device),
            padded_index_T=to_device(place_T, device),
            max_seqlen=longest,
            is_uniform=equal,
            mask_kind=mask_kind,
            prefix_lengths_S=to_device(prefix, device) if len(prefix) else prefix,
            window=window,
            dense_rule=dense_rule,
            coordinates=coordinates and coordinates.map(lambda one: to_device(one, device)),
        )

    @property
    def num_sequences(self) -> int:
        """The number of sequences."""
        return len(self.cu_seqlens_S1) - 1

    @property
    def rule(self) -> AttentionRule:
        """The mask as a rule."""
        match self.mask_kind:
            case MaskKind.FULL:
                return Full()
            case MaskKind.CAUSAL:
                return Causal()
            case MaskKind.PREFIX_LM:
                return PrefixLM()
            case MaskKind.SLIDING_WINDOW:
                return SlidingWindow(self.window)
            case MaskKind.CAUSAL_WINDOW:
                return And(Causal(), SlidingWindow(self.window))
            case MaskKind.DENSE:
                return self.dense_rule

    def simplified(self) -> PackedSequences:
        """The same under a plainer mask where it allows the same: a window as wide as every sequence is none."""
        if self.mask_kind is MaskKind.SLIDING_WINDOW and self.window >= self.max_seqlen - 1:
            return replace(self, mask_kind=MaskKind.FULL, window=0)
        if self.mask_kind is MaskKind.CAUSAL_WINDOW and self.window >= self.max_seqlen - 1:
            return replace(self, mask_kind=MaskKind.CAUSAL, window=0)
        return self

    def index_T(self) -> Tensor:
        """The place of each token in its sequence."""
        return self.padded_index_T % self.max_seqlen

    def sequence_id_T(self, total: int) -> Tensor:
        """The number of the sequence to which each of all the tokens belongs."""
        return torch.bucketize(
            torch.arange(total, device=self.cu_seqlens_S1.device), self.cu_seqlens_S1[1:], right=True
        )

    def valid_SL(self) -> Tensor:
        """Which places of the padded grid hold a token."""
        lengths_S = self.cu_seqlens_S1.diff()
        return torch.arange(self.max_seqlen, device=lengths_S.device) < lengths_S[:, None]

    def coordinates_SL(self) -> RowCoordinates:
        """The coordinates of the padded grid; where all sequences have the same, there is one row of them."""
        if self.coordinates is not None:
            return self.coordinates.map(lambda one: pad(one, self))
        index_1L = torch.arange(self.max_seqlen, device=self.cu_seqlens_S1.device)[None]
        lengths_S = self.prefix_lengths_S if len(self.prefix_lengths_S) else torch.zeros_like(index_1L[0, :1])
        zeros_1L = torch.zeros_like(index_1L)
        return RowCoordinates(index_1L, zeros_1L, index_1L < lengths_S[:, None], zeros_1L - 1)

    def coordinates_T(self) -> RowCoordinates:
        """The coordinates of the flat batch."""
        if self.coordinates is not None:
            return self.coordinates
        index_T = self.index_T()
        zeros_T = torch.zeros_like(index_T)
        lengths_S = self.prefix_lengths_S
        prefix_T = index_T < lengths_S[self.sequence_id_T(len(index_T))] if len(lengths_S) else index_T < 0
        return RowCoordinates(index_T, zeros_T, prefix_T, zeros_T - 1)

    def attention_mask_SLL(self) -> Tensor:
        """Which places of the padded grid (last axis) each place (the axis before) may read.

        Where all places or all sequences read the same, there is one of them. Padding stands at the end of a sequence,
        so that no past contains it. In a window padding reads padding: what reads nothing becomes not a number.
        """
        if self.mask_kind is MaskKind.FULL:
            return self.valid_SL()[:, None, :]
        here = self.coordinates_SL()
        allowed_SLL: Tensor = self.rule.allows(
            here.map(lambda one: one[:, :, None]), here.map(lambda one: one[:, None, :])
        )
        if self.mask_kind in (MaskKind.CAUSAL, MaskKind.PREFIX_LM):
            return allowed_SLL
        real_SL = self.valid_SL()
        return allowed_SLL & (real_SL[:, :, None] == real_SL[:, None, :])


def padded_indices(cu_seqlens_S1: Tensor, max_seqlen: int) -> Tensor:
    """Where each token stands in the padded grid, on the host.

    By numpy: torch would share this little work out among threads, and wait for the slowest of them.
    """
    offsets = cu_seqlens_S1.numpy().astype(np.int64)
    gaps = np.arange(len(offsets) - 1) * max_seqlen - offsets[:-1]
    return torch.from_numpy(np.arange(offsets[-1]) + np.repeat(gaps, np.diff(offsets)))


def pad(x_TD: Tensor, sequences: PackedSequences) -> Tensor:
    """A flat batch as a grid of sequences, zeros where a sequence is shorter."""
    shape = (sequences.num_sequences, sequences.max_seqlen, *x_TD.shape[1:])
    if sequences.is_uniform:
        return x_TD.view(shape)
    empty = x_TD.new_zeros(sequences.num_sequences * sequences.max_seqlen, *x_TD.shape[1:])
    return empty.index_copy(0, sequences.padded_index_T, x_TD).view(shape)


def unpad(grid_SLD: Tensor, sequences: PackedSequences) -> Tensor:
    """Back to the flat batch."""
    flat = grid_SLD.flatten(0, 1)
    return flat if sequences.is_uniform else flat.index_select(0, sequences.padded_index_T)


def to_device(host: Tensor, device: torch.device | str) -> Tensor:
    """A tensor of the host on the device. From pinned memory, so that the host does not wait until it has arrived."""
    if torch.device(device).type == "cuda":
        host = host.pin_memory()
    return host.to(device, non_blocking=True)


def ints_to_device(array: np.ndarray, device: torch.device | str) -> Tensor:
    """Whole numbers of the data half on the device, as int64."""
    return to_device(torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)), device)


def floats_to_device(array: np.ndarray, device: torch.device | str) -> Tensor:
    """Real numbers of the data half on the device, as float32."""
    return to_device(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)), device)
