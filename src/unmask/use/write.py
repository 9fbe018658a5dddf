"""Texts that a network writes for sources: behind them, or with its decoder.

What arrives: a network that has learned to write, and a flat batch of sources. What leaves: the best text for each.
What never happens here: a source that is read twice. What a layer has made of it is kept, and shared by all texts that
are written for it.

Shapes: B sources, W texts for each, R = B x W, L tokens written so far, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from unmask.nets.decoder import Decoder
from unmask.nets.heads import TokenHead
from unmask.nets.kept import Kept
from unmask.nets.stepwise import Newest, go_on, remember
from unmask.nets.transformer import States, Tokens
from unmask.objectives.writing_heads import SayNext, SayText
from unmask.tokenize.vocab import Vocab
from unmask.train.learner import Learner
from unmask.train.trial import still
from unmask.use.beam import Beams, Step, Written, search
from unmask.use.beam_choice import Beam


def write(learner: Learner, name: str, sources: Tokens, vocab: Vocab, how: Beam) -> list[Written]:
    """The best text for each source, in their order. `name` is that of the objective that learned to write."""
    device = sources.ids_T.device
    with still(learner), _uncompiled(learner):
        step = _Barred(_writing(learner, name, sources), _open(vocab, learner.vocabulary).to(device))
        return search(step, sources.borders.count, vocab.sep, how, device)


class Continuing:
    """The encoder goes on behind its source: the newest token of each text runs through the same blocks."""

    def __init__(self, learner: Learner, head: TokenHead, sources: Tokens) -> None:
        self._learner, self._head = learner, head
        states: States = learner.trunk(sources)
        self._kept = remember(learner.trunk, states, sources.borders)
        self._last_B = sources.borders.offsets_S1[1:].long() - 1
        self._behind_B = sources.position_T[self._last_B] + 1
        self._said_D = learner.mix(states).last_TD[self._last_B]

    def __call__(self, beams: Beams) -> Tensor:
        """The first token is said where the source ends, each other where the one before it stands."""
        if not beams.ids_BWL.shape[-1]:
            return _likely(self._head(self._said_D), beams)
        _follow(self._kept, beams)
        return _likely(self._head(self._learner.mix(self._states(beams)).last_TD), beams)

    def _states(self, beams: Beams) -> States:
        texts, length = beams.ids_BWL.shape[1:]
        ids_R = beams.ids_BWL[..., -1].flatten()
        position_R = (self._behind_B[beams.source_B] + length - 1).repeat_interleave(texts)
        second = min(self._learner.trunk.trunk.segments - 1, 1)
        return go_on(self._learner.trunk, Newest(ids_R, position_R, torch.full_like(ids_R, max(second, 0))), self._kept)


class Decoding:
    """A decoder looks at the states of the encoder, and begins with the token that the source begins with."""

    def __init__(self, learner: Learner, decoder: Decoder, sources: Tokens) -> None:
        self._decoder = decoder
        states: States = learner.mix(learner.trunk(sources))
        self._kept = decoder.remember(states.last_TD, sources.borders)
        self._begin_B = sources.ids_T[sources.borders.offsets_S1[:-1].long()]

    def __call__(self, beams: Beams) -> Tensor:
        """Each token is said where the one before it stands."""
        length = beams.ids_BWL.shape[-1]
        _follow(
            [kept for around in self._kept for kept in (around.own, around.source) if isinstance(kept, Kept)], beams
        )
        ids_R = beams.ids_BWL[..., -1].flatten() if length else self._begin_B[beams.source_B]
        x_RD = self._decoder.step(ids_R, torch.full_like(ids_R, length), self._kept)
        return _likely(self._decoder.logits(x_RD), beams)


class _Barred:
    """A step that says no special token but the end."""

    def __init__(self, step: Step, open_V: Tensor) -> None:
        self._step, self._open_V = step, open_V

    def __call__(self, beams: Beams) -> Tensor:
        """The same log-probabilities, with none for what is no text."""
        return self._step(beams).masked_fill(~self._open_V, -torch.inf)


def _writing(learner: Learner, name: str, sources: Tokens) -> Step:
    match learner.heads[name]:
        case SayNext() as head:
            return Continuing(learner, head.tokens, sources)
        case SayText() as head:
            return Decoding(learner, head.decoder, sources)
    raise AssertionError(f"the head {name!r} has not learned to write")


def _uncompiled(learner: Learner) -> AbstractContextManager[None]:
    """Blocks run as they are written: compiled ones would be made anew for texts of every length."""
    if not learner.compiled:
        return nullcontext()
    stance: AbstractContextManager[None] = torch.compiler.set_stance("force_eager")
    return stance


def _open(vocab: Vocab, size: int) -> Tensor:
    """Which tokens may be written: plain text, and what ends it."""
    open_V = torch.zeros(size, dtype=torch.bool)
    open_V[torch.from_numpy(vocab.ordinary).long()] = True
    open_V[vocab.sep] = True
    return open_V


def _follow(kept: Sequence[Kept], beams: Beams) -> None:
    if beams.moved:
        for one in kept:
            one.follow(beams.kept_B, beams.parent_BW)


def _likely(logits_RV: Tensor, beams: Beams) -> Tensor:
    return logits_RV.float().log_softmax(-1).view(*beams.ids_BWL.shape[:2], -1)
