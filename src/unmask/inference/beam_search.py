"""Beam search for many sources at once, over any function that scores the next token.

In every step each text is continued by every token. Of all continuations for a source the `num_beams` most probable
count: those that end are finished, the others go on. A source is done when no open text can become better than its best
finished one, or when `num_beams` texts are finished and the best of them is better than all open ones are now. One beam
is greedy search.

Shapes: S sources, B of them not done, W texts for each, L tokens generated so far, C candidates, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from unmask.config.inference import BeamSearch


@dataclass(frozen=True, slots=True)
class BeamState:
    """The texts so far, and which text of the previous step each one continues."""

    ids_BWL: Tensor
    source_B: Tensor
    """Which source each row of texts belongs to."""
    surviving_B: Tensor
    """The row of this source in the previous step."""
    parent_BW: Tensor
    """The text of that row that each text continues."""
    is_reordered: bool
    """Whether any row or text changed its index, so that KV caches must be reordered."""


class NextTokenScorer(Protocol):
    """Scores the next token of every text: a model with its KV cache, or a table."""

    def __call__(self, beams: BeamState) -> Tensor:
        """Log-probabilities, B x W x V. The first call has one empty text for each source."""


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """The best text for a source without its end token, and its score."""

    ids: tuple[int, ...]
    score: float


def beam_search(
    step: NextTokenScorer, sources: int, end: int, config: BeamSearch, device: torch.device | str = "cpu"
) -> list[GeneratedText]:
    """The best text for each source. `end` is the end token."""
    finished = _Finished.none(sources, config, device)
    beams, total_BW = _initial_state(sources, device), torch.zeros(sources, 1, device=device)
    for length in range(1, config.max_new_tokens + 1):
        logp_BWV = _mask_disallowed(step(beams), beams.ids_BWL, end, config)
        found = _Candidates.best(total_BW[..., None] + logp_BWV.float(), config.num_beams)
        finished.take(found, beams, end, length)
        open_BC = found.score_BC.masked_fill(found.token_BC == end, -torch.inf)
        total_BW, chosen_BW = open_BC.topk(config.num_beams)
        open_B = finished.open(total_BW[:, 0], beams.source_B, length).nonzero()[:, 0]
        if not len(open_B):
            break
        beams, total_BW = _advance(beams, found, chosen_BW, open_B), total_BW[open_B]
    return finished.texts()


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The 2 * num_beams most probable continuations for each source, best first; at least half of them go on."""

    score_BC: Tensor
    parent_BC: Tensor
    token_BC: Tensor

    @staticmethod
    def best(score_BWV: Tensor, width: int) -> _Candidates:
        vocabulary = score_BWV.shape[-1]
        score_BC, at_BC = score_BWV.flatten(1).topk(min(2 * width, score_BWV[0].numel()))
        missing = max(2 * width - score_BC.shape[1], 0)  # more beams than possible texts
        score_BC = F.pad(score_BC, (0, missing), value=-torch.inf)
        at_BC = F.pad(at_BC, (0, missing))
        return _Candidates(score_BC, at_BC // vocabulary, at_BC % vocabulary)


@dataclass(slots=True)
class _Finished:
    """The best finished text of every source, and the number of finished texts."""

    config: BeamSearch
    ids_SL: Tensor
    length_S: Tensor
    score_S: Tensor
    count_S: Tensor

    @staticmethod
    def none(sources: int, config: BeamSearch, device: torch.device | str) -> _Finished:
        ids_SL, none_S = (
            torch.zeros(sources, config.max_new_tokens, dtype=torch.int64),
            torch.zeros(sources, dtype=torch.int64),
        )
        lowest_S = torch.full((sources,), -torch.inf)
        return _Finished(config, *(one.to(device) for one in (ids_SL, none_S, lowest_S, none_S.clone())))

    def take(self, found: _Candidates, beams: BeamState, end: int, length: int) -> None:
        """Count finished texts, and keep the best one of each source."""
        ends_BC = (found.token_BC == end) & (found.score_BC > -torch.inf)
        ends_BC = ends_BC[:, : self.config.num_beams]
        self.count_S[beams.source_B] += ends_BC.sum(1)
        first_B1 = ends_BC.int().argmax(1, keepdim=True)
        score_B = found.score_BC.gather(1, first_B1)[:, 0] / self.config.length_divisor(length)
        better_B = ends_BC.any(1) & (score_B > self.score_S[beams.source_B])
        row, source = better_B.nonzero()[:, 0], beams.source_B[better_B]
        self.score_S[source], self.length_S[source] = score_B[better_B], length - 1
        self.ids_SL[source, : length - 1] = beams.ids_BWL[row, found.parent_BC.gather(1, first_B1)[row, 0]]

    def open(self, open_B: Tensor, source_B: Tensor, length: int) -> Tensor:
        """Which sources are not done, given the log-probability of the best open text of each."""
        best_B, now_B = self.score_S[source_B], open_B / self.config.length_divisor(length)
        # log-probabilities only fall as a text grows, so this bounds its final score
        attainable_B = open_B / max(
            self.config.length_divisor(length + 1), self.config.length_divisor(self.config.max_new_tokens)
        )
        return (attainable_B > best_B) & ((now_B > best_B) | (self.count_S[source_B] < self.config.num_beams))

    def texts(self) -> list[GeneratedText]:
        rows = zip(self.ids_SL.tolist(), self.length_S.tolist(), self.score_S.tolist(), strict=True)
        return [GeneratedText(tuple(ids[:length]), score) for ids, length, score in rows]


def _initial_state(sources: int, device: torch.device | str) -> BeamState:
    every_B = torch.arange(sources, device=device)
    ids_BWL = torch.zeros(sources, 1, 0, dtype=torch.int64, device=device)
    return BeamState(ids_BWL, every_B, every_B, torch.zeros_like(every_B)[:, None], is_reordered=False)


def _mask_disallowed(logp_BWV: Tensor, ids_BWL: Tensor, end: int, config: BeamSearch) -> Tensor:
    """Mask repeated n-grams, and all but the end token at the maximum length."""
    length = ids_BWL.shape[-1]
    if length == config.max_new_tokens - 1:
        only_V = torch.arange(logp_BWV.shape[-1], device=logp_BWV.device) == end
        return logp_BWV.masked_fill(~only_V, -torch.inf)
    if not config.no_repeat_ngram_size or length < config.no_repeat_ngram_size:
        return logp_BWV
    runs_BWXN = ids_BWL.unfold(2, config.no_repeat_ngram_size, 1)
    last_BW1N = ids_BWL[:, :, None, length - config.no_repeat_ngram_size + 1 :]
    again_BWX = (runs_BWXN[..., :-1] == last_BW1N).all(-1)
    hits_BWV = torch.zeros_like(logp_BWV).scatter_add_(2, runs_BWXN[..., -1], again_BWX.to(logp_BWV.dtype))
    return logp_BWV.masked_fill(hits_BWV > 0, -torch.inf)


def _advance(beams: BeamState, found: _Candidates, chosen_BW: Tensor, open_B: Tensor) -> BeamState:
    """The open texts with their new tokens, for the sources that are not done."""
    parent_BW = found.parent_BC.gather(1, chosen_BW)[open_B]
    token_BW = found.token_BC.gather(1, chosen_BW)[open_B]
    ids_BWL = torch.cat([beams.ids_BWL[open_B[:, None], parent_BW], token_BW[..., None]], dim=-1)
    before = beams.ids_BWL.shape[:2]
    index_W = torch.arange(before[1], device=open_B.device)
    moved = ids_BWL.shape[:2] != before or not bool((parent_BW == index_W).all())
    return BeamState(ids_BWL, beams.source_B[open_B], open_B, parent_BW, moved)
