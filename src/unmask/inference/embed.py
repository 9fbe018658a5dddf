"""Texts as vectors: one layer of a network, pooled over the tokens of each text.

What arrives: a stream of texts. What leaves: blocks of vectors in the order of the texts, float32.
What never happens here: a network that computes padding, or more than one window of texts in memory.

Shapes: T tokens, B rows of a batch, L the longest of them, N rows of a window, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.core.records import Floats
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.inference.pack_texts import NUM_SPECIAL_TOKENS, device_of, pack, with_special_tokens
from unmask.nets.batch.packed_sequences import PackedSequences, pad
from unmask.nets.model import EncoderWithHeads

_WINDOW = 32
"""How many batches are sorted by length together."""
_CACHED = 2048
"""Tokens whose states a processor keeps at hand while it computes them."""


@dataclass(frozen=True, slots=True)
class LayerPooling:
    """Where a vector is read off, and how."""

    layer: int
    """0 for the embeddings, then 1 for the first block and so on."""
    pooling: Pooling = Pooling.MEAN
    normalize: bool = False
    """Whether every vector is brought to length 1."""

    def __post_init__(self) -> None:
        require_untrained(self.pooling)

    def __call__(self, states_TD: Tensor, borders: PackedSequences) -> Tensor:
        """One vector for each row of a flat batch."""
        vectors_BD = _pool(self.pooling, states_TD.float(), borders)
        return F.normalize(vectors_BD, dim=-1) if self.normalize else vectors_BD


def embed(
    model: EncoderWithHeads,
    tokenizer: Tokenizer,
    texts: Iterable[str],
    pooling: LayerPooling,
    batch: int = 64,
    cut: Callable[[int], None] = lambda count: None,
) -> Iterator[Floats]:
    """Vectors for a stream of texts, block after block, in order.

    A text that is too long for the network is cut at its end; `cut` hears how many of a block were.
    """
    _check_layer(model, pooling.layer)
    encoder, vocab, room = Encoder(tokenizer), tokenizer.vocab, model.max_positions - NUM_SPECIAL_TOKENS
    stream = iter(texts)
    while window := list(islice(stream, batch * _WINDOW)):
        ids = encoder.encode_ids(window)
        if model.max_positions:
            cut(sum(len(row) > room for row in ids))
            ids = [row[:room] for row in ids]
        yield _window(model, [with_special_tokens(vocab, row) for row in ids], pooling, batch)


def _window(model: EncoderWithHeads, rows: Sequence[list[int]], pooling: LayerPooling, batch: int) -> Floats:
    """The vectors of some rows in their order; long rows go together, and short ones."""
    order = sorted(range(len(rows)), key=lambda number: len(rows[number]), reverse=True)
    vectors_ND = np.empty((len(rows), model.config.width), np.float32)
    model.eval()
    with torch.inference_mode():
        for chosen in batches_by_tokens(order, [len(row) for row in rows], batch, _max_tokens(device_of(model))):
            tokens = pack([rows[number] for number in chosen], device_of(model))
            states_TD = model.network(tokens).layers[pooling.layer]
            vectors_ND[chosen] = pooling(states_TD, tokens.sequences).cpu().numpy()
    return vectors_ND


def batches_by_tokens(
    order: Sequence[int], lengths: Sequence[int], batch_size: int, max_tokens: int
) -> Iterator[list[int]]:
    """Rows that are computed at once, in order: at most `batch`, and no more tokens than there is room for."""
    chosen: list[int] = []
    taken = 0
    for number in order:
        if chosen and (len(chosen) == batch_size or taken + lengths[number] > max_tokens):
            yield chosen
            chosen, taken = [], 0
        chosen.append(number)
        taken += lengths[number]
    if chosen:
        yield chosen


def _max_tokens(device: torch.device) -> int:
    """Tokens that are computed at once: on a CPU what stays in the cache."""
    return _CACHED if device.type == "cpu" else 2**31


def require_untrained(pooling: Pooling) -> None:
    """Refuse a pooling with weights of its own: a network that is only read has none for it."""
    if pooling is Pooling.ATTENTION:
        raise InputError(
            "An embedding needs a pooling without weights: mean, first or max; found attention, which a head learns "
            "in fine-tuning. Take one of the three."
        )


def _pool(pool: Pooling, states_TD: Tensor, borders: PackedSequences) -> Tensor:
    if pool is Pooling.FIRST:
        return states_TD[borders.cu_seqlens_S1[:-1].long()]
    grid_BLD = pad(states_TD, borders)
    if pool is Pooling.MEAN:
        return grid_BLD.sum(1) / borders.cu_seqlens_S1.diff()[:, None]
    return grid_BLD.masked_fill(~borders.valid_SL()[..., None], -torch.inf).amax(1)


def _check_layer(model: EncoderWithHeads, layer: int) -> None:
    if not 0 <= layer <= model.config.depth:
        raise InputError(
            f"This network has layers 0 (the embeddings) to {model.config.depth}; there is no layer {layer}. Take one "
            "of them, or last."
        )
