"""Linear chains: scores of whole sequences of classes, where each class also depends on the one before it.

What arrives: scores of each class at each place, and scores of the steps between classes. What leaves: the score of a
path, the logarithm of the sum over all paths, and the best path (Lafferty et al., 2001; Viterbi, 1967).
What never happens here: a loop over rows, or a place beyond the length of its row that counts.

Shapes: B rows, L places of the longest row, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Steps:
    """Scores of the first class, of each step from a class (first index) to the next, and of the last class."""

    start_C: Tensor
    step_CC: Tensor
    end_C: Tensor

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """All three."""
        return self.start_C, self.step_CC, self.end_C

    @staticmethod
    def free(classes: int) -> Steps:
        """All steps score the same."""
        return Steps(torch.zeros(classes), torch.zeros(classes, classes), torch.zeros(classes))

    def only(self, start_C: Tensor, step_CC: Tensor, end_C: Tensor) -> Steps:
        """The same scores, with all steps barred but those that are allowed here."""
        pairs = zip(self.parts, (start_C, step_CC, end_C), strict=True)
        return Steps(*(score.masked_fill(~allowed, -torch.inf) for score, allowed in pairs))


@dataclass(frozen=True, slots=True)
class Chains:
    """The scores of each class at each place, row by row, padded at the end. Every row has at least one place."""

    scores_BLC: Tensor
    inside_BL: Tensor
    """Which places belong to their row."""

    @staticmethod
    def of(scores_PC: Tensor, lengths: tuple[int, ...]) -> Chains:
        """Rows that lie one after another. Rows without a place are left out."""
        length_B = torch.tensor([length for length in lengths if length], device=scores_PC.device)
        place_L = torch.arange(max(lengths), device=scores_PC.device)
        inside_BL = place_L < length_B[:, None]
        scores_BLC = scores_PC.new_zeros(*inside_BL.shape, scores_PC.shape[1])
        return Chains(scores_BLC.masked_scatter(inside_BL[..., None], scores_PC), inside_BL)

    def padded(self, value_P: Tensor) -> Tensor:
        """Classes that lie one after another, in rows; 0 beyond their ends."""
        return value_P.new_zeros(self.inside_BL.shape).masked_scatter(self.inside_BL, value_P)

    @property
    def last_B(self) -> Tensor:
        """The last place of each row."""
        return self.inside_BL.sum(1) - 1


def path_scores(chains: Chains, path_BL: Tensor, steps: Steps) -> Tensor:
    """The score of one path through each row."""
    said_BL = chains.scores_BLC.gather(2, path_BL[..., None]).squeeze(2)
    step_BL = steps.step_CC[path_BL[:, :-1], path_BL[:, 1:]]
    ends_B = path_BL.gather(1, chains.last_B[:, None]).squeeze(1)
    inside = (said_BL * chains.inside_BL).sum(1) + (step_BL * chains.inside_BL[:, 1:]).sum(1)
    return inside + steps.start_C[path_BL[:, 0]] + steps.end_C[ends_B]


def log_partition(chains: Chains, steps: Steps) -> Tensor:
    """The logarithm of the sum of exp(score) over all paths through each row: the forward algorithm."""
    total_BC = steps.start_C + chains.scores_BLC[:, 0]
    for place in range(1, chains.scores_BLC.shape[1]):
        next_BC = (total_BC[:, :, None] + steps.step_CC).logsumexp(1) + chains.scores_BLC[:, place]
        total_BC = torch.where(chains.inside_BL[:, place, None], next_BC, total_BC)
    return (total_BC + steps.end_C).logsumexp(1)


@torch.no_grad()
def best_paths(chains: Chains, steps: Steps) -> Tensor:
    """The classes of the best path through each row, one row after another (P); of equals, the lower class."""
    best_BC = steps.start_C + chains.scores_BLC[:, 0]
    came: list[Tensor] = []
    stay_BC = torch.arange(best_BC.shape[1], device=best_BC.device).expand_as(best_BC)
    for place in range(1, chains.scores_BLC.shape[1]):
        next_BC, from_BC = (best_BC[:, :, None] + steps.step_CC).max(1)
        inside_B1 = chains.inside_BL[:, place, None]
        came.append(torch.where(inside_B1, from_BC, stay_BC))  # beyond its end, a row stays where it is
        best_BC = torch.where(inside_B1, next_BC + chains.scores_BLC[:, place], best_BC)
    path = [(best_BC + steps.end_C).argmax(1)]
    for from_BC in reversed(came):
        path.append(from_BC.gather(1, path[-1][:, None]).squeeze(1))
    return torch.stack(path[::-1], 1)[chains.inside_BL]
