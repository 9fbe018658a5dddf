"""Rows for a network that is asked and not trained.

What arrives: ids of texts. What leaves: rows between `[CLS]` and `[SEP]`, and flat batches of them.
What never happens here: padding, or two texts in one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from unmask.data.tokenize.vocab import Vocab
from unmask.nets.batch.packed_sequences import PackedSequences
from unmask.nets.encoder import TokenInputs
from unmask.nets.model import EncoderWithHeads

NUM_SPECIAL_TOKENS = 2
"""How many tokens of a row are not text."""


def with_special_tokens(vocab: Vocab, ids: Iterable[int]) -> list[int]:
    """A row: the ids of one text between the token that begins a row and the one that ends a segment."""
    return [vocab.cls, *ids, vocab.sep]


def pack(rows: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> TokenInputs:
    """Rows as one flat batch, each a world of its own."""
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
    """Where a network lies."""
    return model.network.token_embedding.weight.device
