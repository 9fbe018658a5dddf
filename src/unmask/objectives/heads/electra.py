"""ELECTRA's heads: replaced token detection and All-Tokens MLM, on a batch with the generator's samples.

Shapes: T tokens, P chosen positions, D width, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unmask.config.network import NetworkValues
from unmask.core.records import Cloze, ReplacedTokens
from unmask.nets.batch.batch import Batch
from unmask.nets.encoder import HiddenStates
from unmask.nets.layers.heads import DiscriminatorHead, LMHead
from unmask.objectives.heads.common import LossSum
from unmask.objectives.rtd import JudgedTokens


class RTDHead(nn.Module):
    """Whether each token was replaced; at all tokens, or at the chosen ones only."""

    def __init__(self, config: NetworkValues, judged_tokens: JudgedTokens) -> None:
        super().__init__()
        self.judged_tokens = judged_tokens
        self.discriminator_head = DiscriminatorHead(config)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """Sigmoid cross-entropy, summed in float32. An answer is right if its sign is."""
        answers = batch.target(ReplacedTokens)
        truth_T, real_T = answers.replaced, real_token_mask(batch)
        if self.judged_tokens is JudgedTokens.ALL:
            x_TD = states.last_TD
        else:
            x_TD = states.select(batch.target(Cloze).positions)
            truth_T, real_T = (some.index_select(0, answers.positions) for some in (truth_T, real_T))
        logits_T = self.discriminator_head(x_TD).float()
        total = F.binary_cross_entropy_with_logits(logits_T, truth_T.float(), real_T.float(), reduction="sum")
        spare = batch.num_padding if self.judged_tokens is JudgedTokens.ALL else batch.target(Cloze).num_padding
        return LossSum(total, (((logits_T > 0) == truth_T) & real_T).sum(), len(truth_T) - spare)

    def positions(self, batch: Batch) -> tuple[Tensor, ...]:
        """The chosen positions, if only they are judged."""
        return (batch.target(Cloze).positions,) if self.judged_tokens is JudgedTokens.CHOSEN else ()


class AllTokensMLMHead(nn.Module):
    """Every token: with the probability of the gate the input token, otherwise a word of the softmax."""

    def __init__(self, config: NetworkValues, token: nn.Embedding) -> None:
        super().__init__()
        self.lm_head = LMHead(config, token)
        self.gate = nn.Linear(config.width, 1)

    def forward(self, states: HiddenStates, batch: Batch) -> LossSum:
        """Minus the logarithm of the mixed probability of the truth, summed in float32."""
        cloze, shown_T = batch.target(Cloze), batch.tokens.ids_T
        truth_T = shown_T.index_copy(0, cloze.positions, cloze.answers.clamp_min(0))  # where some are ignored
        gate_T = self.gate(states.last_TD).squeeze(-1).float()
        word_TV = self.lm_head(states.last_TD).float().log_softmax(-1)
        said_T = _mixture_log_prob(word_TV, gate_T, shown_T, truth_T)
        right_T = _most_probable(word_TV, gate_T, shown_T) == truth_T
        real_T = real_token_mask(batch)
        return LossSum(
            -torch.where(real_T, said_T, 0).sum(), (right_T & real_T).sum(), len(truth_T) - batch.num_padding
        )


def real_token_mask(batch: Batch) -> Tensor:
    """Which tokens are of the text, and do not only fill the batch up."""
    return batch.is_real_T if batch.num_padding else torch.ones_like(batch.tokens.ids_T, dtype=torch.bool)


def _mixture_log_prob(word_TV: Tensor, gate_T: Tensor, shown_T: Tensor, token_T: Tensor) -> Tensor:
    """The logarithm of gate * [the token is shown] + (1 - gate) * softmax, at one token each.

    Computed from logarithms, so that neither a gate that is all but shut nor a word that is all but impossible is lost.
    """
    by_word_T = F.logsigmoid(-gate_T) + word_TV.gather(-1, token_T[:, None]).squeeze(-1)
    return torch.where(shown_T == token_T, torch.logaddexp(F.logsigmoid(gate_T), by_word_T), by_word_T)


@torch.no_grad()
def _most_probable(word_TV: Tensor, gate_T: Tensor, shown_T: Tensor) -> Tensor:
    """The token that the mixture holds likeliest: the one that is shown, or the likeliest of all words."""
    best_T = word_TV.argmax(-1)
    copied_T = _mixture_log_prob(word_TV, gate_T, shown_T, shown_T) >= _mixture_log_prob(
        word_TV, gate_T, shown_T, best_T
    )
    return torch.where(copied_T, shown_T, best_T)
