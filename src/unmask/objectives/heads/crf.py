"""Linear-chain CRF: path scores, the log partition function and the best path (Lafferty et al., 2001; Viterbi, 1967).

All rows of a batch are computed at once; positions beyond the length of a row do not count.

Shapes: B rows, L positions of the longest row, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Transitions:
    """Scores of the first class, of each step from a class (first index) to the next, and of the last class."""

    start_C: Tensor
    transition_CC: Tensor
    end_C: Tensor

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """All three."""
        return self.start_C, self.transition_CC, self.end_C

    @staticmethod
    def zeros(num_classes: int) -> Transitions:
        """All steps score the same."""
        return Transitions(torch.zeros(num_classes), torch.zeros(num_classes, num_classes), torch.zeros(num_classes))

    def masked(self, start_C: Tensor, transition_CC: Tensor, end_C: Tensor) -> Transitions:
        """The same scores, with all steps barred but those that are allowed here."""
        pairs = zip(self.tensors, (start_C, transition_CC, end_C), strict=True)
        return Transitions(*(score.masked_fill(~allowed, -torch.inf) for score, allowed in pairs))


@dataclass(frozen=True, slots=True)
class Emissions:
    """The scores of each class at each place, row by row, padded at the end. Every row has at least one place."""

    scores_BLC: Tensor
    mask_BL: Tensor
    """Which places belong to their row."""

    @staticmethod
    def from_flat(scores_PC: Tensor, lengths: tuple[int, ...]) -> Emissions:
        """Rows that lie one after another. Rows without a place are left out."""
        length_B = torch.tensor([length for length in lengths if length], device=scores_PC.device)
        place_L = torch.arange(max(lengths), device=scores_PC.device)
        inside_BL = place_L < length_B[:, None]
        scores_BLC = scores_PC.new_zeros(*inside_BL.shape, scores_PC.shape[1])
        return Emissions(scores_BLC.masked_scatter(inside_BL[..., None], scores_PC), inside_BL)

    def pad(self, value_P: Tensor) -> Tensor:
        """Classes that lie one after another, in rows; 0 beyond their ends."""
        return value_P.new_zeros(self.mask_BL.shape).masked_scatter(self.mask_BL, value_P)

    @property
    def last_index_B(self) -> Tensor:
        """The last place of each row."""
        return self.mask_BL.sum(1) - 1


def path_scores(emissions: Emissions, path_BL: Tensor, transitions: Transitions) -> Tensor:
    """The score of one path through each row."""
    said_BL = emissions.scores_BLC.gather(2, path_BL[..., None]).squeeze(2)
    step_BL = transitions.transition_CC[path_BL[:, :-1], path_BL[:, 1:]]
    ends_B = path_BL.gather(1, emissions.last_index_B[:, None]).squeeze(1)
    inside = (said_BL * emissions.mask_BL).sum(1) + (step_BL * emissions.mask_BL[:, 1:]).sum(1)
    return inside + transitions.start_C[path_BL[:, 0]] + transitions.end_C[ends_B]


def log_partition(emissions: Emissions, transitions: Transitions) -> Tensor:
    """The logarithm of the sum of exp(score) over all paths through each row: the forward algorithm."""
    total_BC = transitions.start_C + emissions.scores_BLC[:, 0]
    for place in range(1, emissions.scores_BLC.shape[1]):
        next_BC = (total_BC[:, :, None] + transitions.transition_CC).logsumexp(1) + emissions.scores_BLC[:, place]
        total_BC = torch.where(emissions.mask_BL[:, place, None], next_BC, total_BC)
    return (total_BC + transitions.end_C).logsumexp(1)


@torch.no_grad()
def viterbi(emissions: Emissions, transitions: Transitions) -> Tensor:
    """The classes of the best path through each row, one row after another (P); of equals, the lower class."""
    best_BC = transitions.start_C + emissions.scores_BLC[:, 0]
    came: list[Tensor] = []
    stay_BC = torch.arange(best_BC.shape[1], device=best_BC.device).expand_as(best_BC)
    for place in range(1, emissions.scores_BLC.shape[1]):
        next_BC, from_BC = (best_BC[:, :, None] + transitions.transition_CC).max(1)
        inside_B1 = emissions.mask_BL[:, place, None]
        came.append(torch.where(inside_B1, from_BC, stay_BC))  # beyond its end, a row stays where it is
        best_BC = torch.where(inside_B1, next_BC + emissions.scores_BLC[:, place], best_BC)
    path = [(best_BC + transitions.end_C).argmax(1)]
    for from_BC in reversed(came):
        path.append(from_BC.gather(1, path[-1][:, None]).squeeze(1))
    return torch.stack(path[::-1], 1)[emissions.mask_BL]
