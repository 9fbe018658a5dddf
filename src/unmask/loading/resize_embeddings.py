"""Resize the token embeddings of a network whose tokenizer was extended.

Shapes: V vocabulary, P pieces of one new entry, E embedding width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from unmask.core.errors import InputError
from unmask.nets.model import EncoderWithHeads

_BY_ID = ("network.embed.token.weight", "lm_head.token.weight", "lm_head.bias")
"""The tensors with one entry per id."""


def resize_embeddings(model: EncoderWithHeads, pieces: Mapping[int, Sequence[int]]) -> EncoderWithHeads:
    """A network with rows for the new ids, each the mean of the rows of its old pieces. Old rows are unchanged.

    `unmask.data.tokenize.extend` computes the pieces. Spare rows of a network that was built larger than its
    tokenizer are used first.
    """
    size = max((model.vocab_size, *(number + 1 for number in pieces)))
    _check(model.vocab_size, size, pieces)
    larger = model.with_config(model.config, size)
    state = {
        name: _extend_tensor(tensor, size, pieces) if name in _BY_ID else tensor
        for name, tensor in model.state_dict().items()
    }
    larger.load_state_dict(state)
    return larger.to(model.network.token_embedding.weight.device).train(model.training)


def _extend_tensor(old_VE: Tensor, size: int, pieces: Mapping[int, Sequence[int]]) -> Tensor:
    new_VE = old_VE.new_zeros(size, *old_VE.shape[1:])
    new_VE[: len(old_VE)] = old_VE
    for number, parts_P in pieces.items():
        new_VE[number] = old_VE[torch.tensor(parts_P, device=old_VE.device)].mean(0)
    return new_VE


def _check(num_rows: int, size: int, pieces: Mapping[int, Sequence[int]]) -> None:
    gaps = [number for number in range(num_rows, size) if number not in pieces]
    odd = [number for number, parts in pieces.items() if not parts or not all(0 <= part < num_rows for part in parts)]
    clash = [number for number, parts in pieces.items() if any(part in pieces for part in parts)]
    if gaps or odd or clash:
        raise InputError(
            f"Extending a network of {num_rows} rows needs old pieces for every new id; the ids "
            f"{sorted({*gaps, *odd, *clash})[:6]} have none. Give the pieces that extending its own tokenizer gave."
        )
