"""ELECTRA's generator as a module, and the batch with its samples in place of masked tokens.

The batch brings one random number for each position, so that a row gets the same samples in any micro-batch, in any
process, in an evaluation and after a resume.

Shapes: T tokens, P chosen positions, V vocabulary.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from unmask.config.network import TransformerConfig
from unmask.core.records import Cloze, ReplacedTokens
from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import TransformerEncoder
from unmask.nets.kernels.dispatch import kernel_supports
from unmask.nets.layers.heads import LMHead
from unmask.objectives.generator import Tie
from unmask.objectives.heads.common import LossSum, lm_loss_from_head

_TIED = ("token", "position", "segment", "task", "norm")
"""What is shared of the embeddings: all but the projection, whose width is the generator's own."""


class GeneratorModule(nn.Module):
    """A generator with a head for tokens, whose output matrix is the generator's own token embedding."""

    def __init__(self, network: TransformerEncoder) -> None:
        super().__init__()
        self.encoder = network
        self.lm_head = LMHead(network.config, network.embed.token)

    def forward(self, batch: Batch) -> tuple[LossSum, Batch]:
        """The loss at masked positions, and the batch with samples there."""
        cloze = batch.target(Cloze)
        x_PD = self.encoder(batch.tokens, (cloze.positions,)).select(cloze.positions)
        term, logits_PV = lm_loss_from_head(self.lm_head, x_PD, cloze.answers, cloze.num_padding)
        return term, fill_samples(batch, sample_from_logits(logits_PV, cloze.uniform, self.lm_head.fused))


def build_generator(encoder: TransformerEncoder, config: TransformerConfig, tie: Tie) -> TransformerEncoder:
    """A network of this shape that shares what is tied."""
    embed = encoder.embed
    if tie is Tie.ALL:
        return encoder
    made = TransformerEncoder(config, embed.token.num_embeddings, embed.max_positions)
    if tie is Tie.EMBEDDINGS:
        for name in _TIED:
            setattr(made.embed, name, getattr(embed, name))
    return made


@torch.no_grad()
def sample_from_logits(logits_PV: Tensor, uniform_P: Tensor, fused: bool = False) -> Tensor:
    """A token for each place, in proportion to its probability: where the running sum passes the place's draw.

    It is the law of the paper's Gumbel noise, at one random number a place instead of one for every word.
    """
    if fused and kernel_supports(logits_PV):
        from unmask.nets.kernels.vocab_loss import sample_tokens

        return sample_tokens(logits_PV, uniform_P)
    upto_PV = logits_PV.float().softmax(-1).cumsum(-1)
    # The sum may end a little off 1; scaled by its own end, no sample falls past the last word.
    reached_P1 = uniform_P[:, None] * upto_PV[:, -1:]
    found_P1 = torch.searchsorted(upto_PV, reached_P1, right=True)
    return found_P1.squeeze(-1).clamp_(max=upto_PV.shape[-1] - 1)


def fill_samples(batch: Batch, sampled_P: Tensor) -> Batch:
    """The batch with these tokens at the chosen positions; a correct sample replaces nothing."""
    cloze = batch.target(Cloze)
    ids_T = batch.tokens.ids_T
    wrong_P = sampled_P != cloze.answers
    replaced_T = torch.zeros_like(ids_T, dtype=torch.bool).index_copy(0, cloze.positions, wrong_P)
    tokens = replace(batch.tokens, ids_T=ids_T.index_copy(0, cloze.positions, sampled_P))
    return replace(batch, tokens=tokens, targets=(*batch.targets, ReplacedTokens(replaced_T, cloze.positions)))
