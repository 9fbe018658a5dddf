"""All-Tokens MLM: the mixture of copying and saying, written out, and where it would overflow."""

from __future__ import annotations

import pytest
import torch
from little_guess import batch, instance, learner, original

from unmask.objectives.all_tokens_mlm import AllTokensMLM
from unmask.objectives.generator import Generator
from unmask.objectives.heads.electra import AllTokensMLMHead
from unmask.train.multi_head_model import MultiHeadModel

BOTH = (Generator(), AllTokensMLM())


def parts(made: MultiHeadModel) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What is shown, the gate and the probabilities of the softmax."""
    shown = made.heads["guess"](batch())[1].tokens
    states, head = made.network(shown).last_TD, made.heads["every"]
    assert isinstance(head, AllTokensMLMHead)
    return shown.ids_T, head.gate(states).squeeze(-1).sigmoid(), head.lm_head(states).softmax(-1)


def test_the_loss_is_that_of_the_written_out_mixture() -> None:
    made = learner(*BOTH)
    with torch.no_grad():
        shown, gate, word = parts(made)
        mixed = (1 - gate)[:, None] * word
        mixed[torch.arange(len(shown)), shown] += gate
        term = made(batch(), BOTH)[1]
    assert torch.allclose(mixed.sum(-1), torch.ones(len(shown)))
    truth = original()
    assert float(term.total) == pytest.approx(float(-mixed.gather(-1, truth[:, None]).log().sum()), rel=1e-5)
    assert int(term.correct) == int((mixed.argmax(-1) == truth).sum())
    assert term.count == len(truth) == AllTokensMLM().num_predictions(instance())


@pytest.mark.parametrize("bias", [-200.0, 200.0])
def test_a_gate_that_is_quite_open_or_shut_stays_finite(bias: float) -> None:
    made = learner(*BOTH)
    head = made.heads["every"]
    assert isinstance(head, AllTokensMLMHead)
    with torch.no_grad():
        head.gate.bias.fill_(bias)
    made(batch(), BOTH)[1].total.backward()
    assert all(bool(p.grad.isfinite().all()) for p in made.parameters() if p.grad is not None)
    term = made(batch(), BOTH)[1]
    assert bool(term.total.isfinite())
    if bias > 0:  # all is copied: right wherever the guess was, at a price of 200 wherever it was not
        shown = made.heads["guess"](batch())[1].tokens.ids_T
        assert int(term.correct) == int((shown == original()).sum())
