"""Text generation with a KV cache: an encoder as prefix LM, or a new decoder with cross-attention; and detokenization.

Every source is encoded once (prefill); its KV cache is shared by all beams.

Shapes: B sources, W texts for each, R = B x W, L tokens generated so far, D width, V vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from unmask.config.inference import BeamSearch
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab
from unmask.inference.beam_search import BeamState, GeneratedText, NextTokenScorer, beam_search
from unmask.nets.attention.kv_cache import KVCache
from unmask.nets.decoder import Decoder
from unmask.nets.encoder import HiddenStates, TokenInputs
from unmask.nets.incremental import NewTokens, decode_step, prefill
from unmask.nets.layers.heads import LMHead
from unmask.objectives.heads.seq2seq import CausalLMHead, Seq2SeqHead
from unmask.train.evaluate import eval_mode
from unmask.train.multi_head_model import MultiHeadModel

_WIDE = "\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff“”‘’—…"
"""Chinese and Japanese characters and punctuation, which are written without spaces."""
_BESIDE_WIDE = re.compile(f"(?<=[{_WIDE}]) +| +(?=[{_WIDE}])")


def generate(
    learner: MultiHeadModel, name: str, sources: TokenInputs, vocab: Vocab, config: BeamSearch
) -> list[GeneratedText]:
    """The best text for each source, in order. `name` is that of the generation head."""
    device = sources.ids_T.device
    with eval_mode(learner), _uncompiled(learner):
        step = _WithoutSpecialTokens(
            _scorer_for(learner, name, sources), _allowed_tokens(vocab, learner.vocab_size).to(device)
        )
        return beam_search(step, sources.sequences.num_sequences, vocab.sep, config, device)


class PrefixLMGenerator:
    """Incremental decoding with the encoder as prefix LM: new tokens run through its own blocks."""

    def __init__(self, learner: MultiHeadModel, head: LMHead, sources: TokenInputs) -> None:
        self._learner, self._head = learner, head
        states: HiddenStates = learner.network(sources)
        self._caches = prefill(learner.network.require_encoder("Continuing a text"), states, sources.sequences)
        self._last_B = sources.sequences.cu_seqlens_S1[1:].long() - 1
        self._next_position_B = sources.position_T[self._last_B] + 1
        self._last_state_D = learner.layer_mix(states).last_TD[self._last_B]

    def __call__(self, beams: BeamState) -> Tensor:
        """Log-probabilities of the next token; the first one is predicted at the last token of the source."""
        if not beams.ids_BWL.shape[-1]:
            return _log_probs(self._head(self._last_state_D), beams)
        _reorder_caches(self._caches, beams)
        return _log_probs(self._head(self._learner.layer_mix(self._states(beams)).last_TD), beams)

    def _states(self, beams: BeamState) -> HiddenStates:
        texts, length = beams.ids_BWL.shape[1:]
        ids_R = beams.ids_BWL[..., -1].flatten()
        position_R = (self._next_position_B[beams.source_B] + length - 1).repeat_interleave(texts)
        second = min(self._learner.network.config.num_segments - 1, 1)
        return decode_step(
            self._learner.network.require_encoder("Continuing a text"),
            NewTokens(ids_R, position_R, torch.full_like(ids_R, max(second, 0))),
            self._caches,
        )


class DecoderGenerator:
    """Incremental decoding with a new decoder, which starts with the first token of the source."""

    def __init__(self, learner: MultiHeadModel, decoder: Decoder, sources: TokenInputs) -> None:
        self._decoder = decoder
        states: HiddenStates = learner.layer_mix(learner.network(sources))
        self._caches = decoder.prefill(states.last_TD, sources.sequences)
        self._begin_B = sources.ids_T[sources.sequences.cu_seqlens_S1[:-1].long()]

    def __call__(self, beams: BeamState) -> Tensor:
        """Log-probabilities of the next token."""
        length = beams.ids_BWL.shape[-1]
        _reorder_caches(
            [cache for layer in self._caches for cache in (layer.own, layer.source) if isinstance(cache, KVCache)],
            beams,
        )
        ids_R = beams.ids_BWL[..., -1].flatten() if length else self._begin_B[beams.source_B]
        x_RD = self._decoder.decode_step(ids_R, torch.full_like(ids_R, length), self._caches)
        return _log_probs(self._decoder.logits(x_RD), beams)


class _WithoutSpecialTokens:
    """Masks all special tokens but the end token."""

    def __init__(self, step: NextTokenScorer, allowed_V: Tensor) -> None:
        self._step, self._allowed_V = step, allowed_V

    def __call__(self, beams: BeamState) -> Tensor:
        """Log-probabilities without special tokens."""
        return self._step(beams).masked_fill(~self._allowed_V, -torch.inf)


def _scorer_for(learner: MultiHeadModel, name: str, sources: TokenInputs) -> NextTokenScorer:
    match learner.heads[name]:
        case CausalLMHead() as head:
            return PrefixLMGenerator(learner, head.lm_head, sources)
        case Seq2SeqHead() as head:
            return DecoderGenerator(learner, head.decoder, sources)
    raise AssertionError(f"the head {name!r} does not generate text")


def _uncompiled(learner: MultiHeadModel) -> AbstractContextManager[None]:
    """Run eagerly: `torch.compile` would recompile for every length."""
    if not learner.compiled:
        return nullcontext()
    stance: AbstractContextManager[None] = torch.compiler.set_stance("force_eager")
    return stance


def _allowed_tokens(vocab: Vocab, size: int) -> Tensor:
    """The tokens that may be generated: ordinary tokens and the end token."""
    allowed_V = torch.zeros(size, dtype=torch.bool)
    allowed_V[torch.from_numpy(vocab.ordinary).long()] = True
    allowed_V[vocab.sep] = True
    return allowed_V


def _reorder_caches(caches: Sequence[KVCache], beams: BeamState) -> None:
    if beams.is_reordered:
        for cache in caches:
            cache.reorder(beams.surviving_B, beams.parent_BW)


def _log_probs(logits_RV: Tensor, beams: BeamState) -> Tensor:
    return logits_RV.float().log_softmax(-1).view(*beams.ids_BWL.shape[:2], -1)


def decode(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Generated ids as text: without special tokens, and without spaces around Chinese and Japanese characters."""
    text: str = tokenizer.pipeline.decode(list(ids), skip_special_tokens=True)
    return _BESIDE_WIDE.sub("", text).strip()
