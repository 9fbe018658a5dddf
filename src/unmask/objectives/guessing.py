"""The generator of `Guess` as a module, and the batch as the trunk is shown it.

What arrives: a batch with holes. What leaves: the loss of a cloze, and the batch with a drawn token in every hole.
What never happens here: a draw from a generator of random numbers. The batch brings its draws along, one for each
place, so that the same row is filled alike in any micro-batch and in any process, in a trial and after a resume.

Shapes: T tokens, P chosen positions, V vocabulary.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from unmask.nets.answers import ReplacedAnswers
from unmask.nets.batch import Batch, cloze_of
from unmask.nets.fused import served
from unmask.nets.heads import TokenHead
from unmask.nets.transformer import Transformer
from unmask.nets.trunk import Trunk
from unmask.objectives.guess import Tie
from unmask.objectives.heads import Term, say_with

_TIED = ("token", "position", "segment", "task", "norm")
"""What is shared of the embeddings: all but the projection, whose width is the generator's own."""


class Guessing(nn.Module):
    """A generator with a head for tokens, whose output matrix is the generator's own token embedding."""

    def __init__(self, network: Transformer) -> None:
        super().__init__()
        self.network = network
        self.tokens = TokenHead(network.trunk, network.embed.token)

    def forward(self, batch: Batch) -> tuple[Term, Batch]:
        """How well the holes were guessed, and the batch with the guesses in them."""
        cloze = cloze_of(batch)
        x_PD = self.network(batch.tokens, (cloze.positions_P,)).at(cloze.positions_P)
        term, logits_PV = say_with(self.tokens, x_PD, cloze.answers_P, cloze.spare)
        return term, written(batch, drawn(logits_PV, cloze.chance_P, self.tokens.fused))


def generator(trunk: Transformer, shape: Trunk, tie: Tie) -> Transformer:
    """A network of this shape that shares with the trunk what is tied."""
    embed = trunk.embed
    if tie is Tie.ALL:
        return trunk
    made = Transformer(shape, embed.token.num_embeddings, embed.positions)
    if tie is Tie.EMBEDDINGS:
        for name in _TIED:
            setattr(made.embed, name, getattr(embed, name))
    return made


@torch.no_grad()
def drawn(logits_PV: Tensor, chance_P: Tensor, fused: bool = False) -> Tensor:
    """A token for each place, in proportion to its probability: where the running sum passes the place's draw.

    It is the law of the paper's Gumbel noise, at one random number a place instead of one for every word.
    """
    if fused and served(logits_PV):
        from unmask.nets.fused_tokens import draw

        return draw(logits_PV, chance_P)
    upto_PV = logits_PV.float().softmax(-1).cumsum(-1)
    # The sum may end a little beside 1; measured by its own end, no draw falls behind the last word.
    reached_P1 = chance_P[:, None] * upto_PV[:, -1:]
    found_P1 = torch.searchsorted(upto_PV, reached_P1, right=True)
    return found_P1.squeeze(-1).clamp_(max=upto_PV.shape[-1] - 1)


def written(batch: Batch, guess_P: Tensor) -> Batch:
    """The batch with these tokens at the chosen places, and the truth about them: a right guess replaces nothing."""
    cloze = cloze_of(batch)
    ids_T = batch.tokens.ids_T
    wrong_P = guess_P != cloze.answers_P
    replaced_T = torch.zeros_like(ids_T, dtype=torch.bool).index_copy(0, cloze.positions_P, wrong_P)
    tokens = replace(batch.tokens, ids_T=ids_T.index_copy(0, cloze.positions_P, guess_P))
    return replace(batch, tokens=tokens, answers=(*batch.answers, ReplacedAnswers(replaced_T, cloze.positions_P)))
