"""Sentence embeddings: one layer of an encoder, pooled over the tokens of each text, and a streaming `.npy` writer.

Texts are sorted by length inside a window of batches; no padding is computed. A `.npy` file is written block by block,
and its header is rewritten with the final shape.

Shapes: T tokens, B rows of a batch, L the longest of them, N rows of a window, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.core.io.atomic import atomic_file
from unmask.core.records import Floats
from unmask.data.tokenize.encoder import Encoder
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.inference.pack_texts import NUM_SPECIAL_TOKENS, device_of, pack, with_special_tokens
from unmask.nets.batch.packed_sequences import PackedSequences, pad
from unmask.nets.model import EncoderWithHeads

_WINDOW = 32
"""Batches that are sorted by length together."""
_CACHED = 2048
"""Tokens per batch on a CPU, whose states fit into its cache."""


@dataclass(frozen=True, slots=True)
class LayerPooling:
    """The layer and the pooling of an embedding."""

    layer: int
    """0 for the embeddings, then 1 for the first block and so on."""
    pooling: Pooling = Pooling.MEAN
    normalize: bool = False
    """Whether vectors are normalized to length 1."""

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

    Texts that are too long are truncated; `cut` receives how many of a block were.
    """
    _check_layer(model, pooling.layer)
    encoder, vocab, max_length = Encoder(tokenizer), tokenizer.vocab, model.max_positions - NUM_SPECIAL_TOKENS
    stream = iter(texts)
    while window := list(islice(stream, batch * _WINDOW)):
        ids = encoder.encode_ids(window)
        if model.max_positions:
            cut(sum(len(row) > max_length for row in ids))
            ids = [row[:max_length] for row in ids]
        yield _window(model, [with_special_tokens(vocab, row) for row in ids], pooling, batch)


def _window(model: EncoderWithHeads, rows: Sequence[list[int]], pooling: LayerPooling, batch: int) -> Floats:
    """The vectors of some rows in order, computed in batches of similar length."""
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
    """Batches of rows in order, of at most `batch_size` rows and `max_tokens` tokens."""
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
    """The most tokens of a batch."""
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


def write_vectors(path: Path, blocks: Iterable[Floats], width: int) -> tuple[int, int]:
    """Write blocks of rows to one float32 `.npy` file, and return its shape."""
    rows = 0
    with atomic_file(path) as file:
        _write_header(file, (rows, width))
        begin = file.tell()
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype="<f4").data)
            rows += len(block)
        file.seek(0)
        _write_header(file, (rows, width))
        assert file.tell() == begin, "the header has its reserved size"
    return rows, width


def _write_header(file: BinaryIO, shape: tuple[int, int]) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
