"""Where sequences begin and end in a flat batch, who sees whom inside one, and the padded grid that some kernels need.

What arrives: offsets of the stretches of tokens that may see each other. What leaves: everything attention asks for.
What never happens here: padding that is computed with; a padded place is never a query whose result is kept.

Shapes: T tokens of the batch, S sequences, L the longest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor


class MaskKind(StrEnum):
    """What a token sees of its own sequence. The matrices are those of the rules in `attention_pattern.py`."""

    FULL = "full"
    """Everything (`Everything`)."""
    CAUSAL = "past"
    """Itself and what stands before it (`Past`)."""
    PREFIX_LM = "prefix"
    """A token of the source the source, any other the source and its own past (`Prefix`)."""
    SLIDING_WINDOW = "near"
    """What stands within its reach, to either side (`Window`)."""


@dataclass(frozen=True, slots=True)
class PackedSequences:
    """Sequences of a flat batch; each is a world of its own."""

    cu_seqlens_S1: Tensor
    """int32, where each sequence begins; one more for the end."""
    padded_index_T: Tensor
    """int64, where each token stands in the padded grid. Found on the host, so that no layer waits for the device."""
    max_seqlen: int
    is_uniform: bool
    """Whether all sequences are equally long, so that the flat batch is a grid already."""
    mask_kind: MaskKind = MaskKind.FULL
    prefix_lengths_S: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int32))
    """int32, how many tokens at the start of each sequence are its source; empty unless the sight is PREFIX."""
    window: int = 0
    """How many tokens to either side are seen, beside the token itself; 0 unless the sight is NEAR."""

    @staticmethod
    def of(
        cu_seqlens: Sequence[int] | Tensor,
        device: torch.device | str = "cpu",
        mask_kind: MaskKind = MaskKind.FULL,
        prefix_lengths: Sequence[int] | Tensor = (),
        window: int = 0,
    ) -> PackedSequences:
        """Borders from offsets that lie on the host; also the lengths of sources (PREFIX), or a reach (NEAR)."""
        host, source = (
            torch.as_tensor(cu_seqlens, dtype=torch.int32),
            torch.as_tensor(prefix_lengths, dtype=torch.int32),
        )
        if len(source) != (len(host) - 1 if mask_kind is MaskKind.PREFIX_LM else 0):
            raise ValueError(f"{len(host) - 1} sequences under a {mask_kind} sight, but {len(source)} sources")
        if window < 0 or (window and mask_kind is not MaskKind.SLIDING_WINDOW):
            raise ValueError(
                f"a reach of {window} under a {mask_kind} sight; it is 0 or more, and 0 unless the sight is near"
            )
        lengths = host.diff()
        if len(source) and not ((source >= 0) & (source <= lengths)).all():
            raise ValueError("a source is longer than its sequence")
        longest = int(lengths.max())
        place_T = padded_indices(host, longest)
        equal = bool((lengths == longest).all())
        source = to_device(source, device) if len(source) else source
        return PackedSequences(
            to_device(host, device), to_device(place_T, device), longest, equal, mask_kind, source, window
        )

    @property
    def num_sequences(self) -> int:
        """The number of sequences."""
        return len(self.cu_seqlens_S1) - 1

    def simplified(self) -> PackedSequences:
        """The same under the plainest sight that says the same: who reaches both ends of every sequence sees it all."""
        if self.mask_kind is MaskKind.SLIDING_WINDOW and self.window >= self.max_seqlen - 1:
            return replace(self, mask_kind=MaskKind.FULL, window=0)
        return self

    def sequence_id_T(self, total: int) -> Tensor:
        """The number of the sequence to which each of all the tokens belongs."""
        return torch.bucketize(
            torch.arange(total, device=self.cu_seqlens_S1.device), self.cu_seqlens_S1[1:], right=True
        )

    def valid_SL(self) -> Tensor:
        """Which places of the padded grid hold a token."""
        lengths_S = self.cu_seqlens_S1.diff()
        return torch.arange(self.max_seqlen, device=lengths_S.device) < lengths_S[:, None]

    def attention_mask_SLL(self) -> Tensor:
        """Which places of the padded grid (last axis) each place (the axis before) may read.

        Where all places or all sequences read the same, there is one of them. Padding stands at the end of a sequence,
        so that it is nobody's past. Under a NEAR sight padding reads padding: whatever reads nothing becomes no number.
        """
        if self.mask_kind is MaskKind.FULL:
            return self.valid_SL()[:, None, :]
        place_L = torch.arange(self.max_seqlen, device=self.cu_seqlens_S1.device)
        if self.mask_kind is MaskKind.SLIDING_WINDOW:
            near_LL = (place_L - place_L[:, None]).abs() <= self.window
            real_SL = self.valid_SL()
            return near_LL & (real_SL[:, :, None] == real_SL[:, None, :])
        past_1LL = (place_L <= place_L[:, None])[None]
        return (
            past_1LL
            if self.mask_kind is MaskKind.CAUSAL
            else past_1LL | (place_L < self.prefix_lengths_S[:, None])[:, None, :]
        )


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
