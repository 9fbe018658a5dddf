"""KV cache: keys and values of one layer, so that a text grows by one token at a time.

Several texts may be generated for one source; its keys and values are kept once.

Shapes: B sources, M tokens of the longest, W texts for each source, R = B x W texts, L tokens generated, H heads,
K width of a head, U tokens of all sources.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unmask.nets.batch.packed_sequences import PackedSequences, pad


class KVCache:
    """Keys and values of one layer: of the sources, and of the tokens generated for them."""

    def __init__(self, source_2BHMK: Tensor, valid_BM: Tensor) -> None:
        self._source_2BHMK, self._valid_BM = source_2BHMK, valid_BM
        _, sources, heads, _, width = source_2BHMK.shape
        self._written_2BWHLK = source_2BHMK.new_zeros(2, sources, 1, heads, 0, width)

    @staticmethod
    def from_source(source_U2HK: Tensor, sequences: PackedSequences) -> KVCache:
        """The cache of the sources; nothing is generated yet."""
        grid_BM2HK = pad(source_U2HK, sequences)
        return KVCache(grid_BM2HK.permute(2, 0, 3, 1, 4).contiguous(), sequences.valid_SL())

    def without_source(self) -> KVCache:
        """The same sources without a token: for self-attention in a decoder, which reads its source elsewhere."""
        return KVCache(self._source_2BHMK[..., :0, :], self._valid_BM[:, :0])

    def reorder(self, source_B: Tensor, parent_BW: Tensor) -> None:
        """Keep some of the sources, and of each of them some of its texts (beam search)."""
        if len(source_B) < self._source_2BHMK.shape[1]:
            self._source_2BHMK, self._valid_BM = self._source_2BHMK[:, source_B], self._valid_BM[source_B]
        self._written_2BWHLK = self._written_2BWHLK[:, source_B[:, None], parent_BW]

    def append_and_attend(self, qkv_R3HK: Tensor) -> Tensor:
        """Add one token to every text, and attend to its source, to the tokens before it and to itself."""
        q_RHK, k_RHK, v_RHK = qkv_R3HK.unbind(1)
        shape = (*self._written_2BWHLK.shape[:4], 1, k_RHK.shape[-1])
        new_2BWH1K = torch.stack([k_RHK, v_RHK]).view(shape)
        self._written_2BWHLK = torch.cat([self._written_2BWHLK, new_2BWH1K], dim=-2)
        return self.attend(q_RHK)

    def attend(self, q_RHK: Tensor) -> Tensor:
        """Attention of the newest token of each text to source and text, in one softmax."""
        source_k, source_v = self._source_2BHMK.unbind(0)
        own_k, own_v = self._written_2BWHLK.unbind(0)
        sources, heads, tokens, width = source_k.shape
        q_BWHK = q_RHK.view(sources, -1, heads, width) * width**-0.5
        to_source_BHWM = q_BWHK.transpose(1, 2) @ source_k.transpose(-1, -2)
        to_source_BHWM = to_source_BHWM.masked_fill(~self._valid_BM[:, None, None, :], -torch.inf)
        to_own_BWHL = (own_k @ q_BWHK[..., None]).squeeze(-1)
        weights = torch.cat([to_source_BHWM.transpose(1, 2), to_own_BWHL], dim=-1).softmax(-1)
        from_source_BWHK = (weights[..., :tokens].transpose(1, 2) @ source_v).transpose(1, 2)
        from_own_BWHK = (weights[..., None, tokens:] @ own_v).squeeze(-2)
        return (from_source_BWHK + from_own_BWHK).reshape(q_RHK.shape)
