"""Packed rows `[CLS] text [SEP]` for inference: flat batches without padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from unmask.data.tokenize.vocab import Vocab
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import TokenInputs
from unmask.nets.model import EncoderWithHeads

NUM_SPECIAL_TOKENS = 2
"""Special tokens of a row."""


def with_special_tokens(vocab: Vocab, ids: Iterable[int]) -> list[int]:
    """A row: the ids of one text between [CLS] and [SEP]."""
    return [vocab.cls, *ids, vocab.sep]


def pack(rows: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> TokenInputs:
    """Rows as one packed batch; attention stays inside each row."""
    ends = torch.tensor([0, *(len(row) for row in rows)]).cumsum(0)
    ids_T = torch.tensor([number for row in rows for number in row])
    position_T = torch.cat([torch.arange(len(row)) for row in rows])
    return TokenInputs(
        ids_T=ids_T.to(device),
        position_T=position_T.to(device),
        segment_T=torch.zeros_like(ids_T).to(device),
        sequences=PackedSequences.of(ends, device),
    )


def device_of(model: EncoderWithHeads) -> torch.device:
    """The device of a model."""
    return model.network.token_embedding.weight.device
