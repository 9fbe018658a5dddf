"""Replaced token detection: the loss written out on a padded batch, and who is counted."""

from __future__ import annotations

import pytest
import torch
from little_guess import ROWS, batch, instance, learner

from unmask.core.records import ReplacedTokens
from unmask.objectives.generator import Generator
from unmask.objectives.rtd import RTD, JudgedTokens
from unmask.train.multi_head_model import MultiHeadModel


def judged(made: MultiHeadModel) -> tuple[torch.Tensor, ReplacedTokens]:
    """Every logit, and the truth."""
    shown = made.heads["guess"](batch())[1]
    answers = shown.target(ReplacedTokens)
    logits: torch.Tensor = made.heads["replaced"].discriminator_head(made.network(shown.tokens).last_TD)
    return logits.detach(), answers


def test_the_loss_is_that_of_a_padded_batch_averaged_over_real_tokens() -> None:
    made = learner()
    logits_T, answers = judged(made)
    lengths = [len(row) for row in ROWS]
    pad = torch.nn.utils.rnn.pad_sequence
    logits, truth = (
        pad(list(flat.split(lengths)), batch_first=True, padding_value=value)
        for flat, value in ((logits_T, 99.0), (answers.replaced.float(), 0.0))
    )
    real = pad([torch.ones(length) for length in lengths], batch_first=True)
    losses = -(truth * torch.sigmoid(logits).log() + (1 - truth) * (1 - torch.sigmoid(logits)).log())
    expected = torch.where(real > 0, losses, torch.zeros(())).sum() / real.sum()
    term = made(batch(), (Generator(), RTD()))[1]
    assert float(term.total.detach() / term.count) == pytest.approx(float(expected), rel=1e-5)
    assert term.count == sum(lengths)
    assert int(term.correct) == int(((logits_T > 0) == answers.replaced).sum())
    assert 0 < int(answers.replaced.sum()) <= 6


def test_only_the_chosen_tokens_if_that_is_wished_for() -> None:
    objectives = (Generator(), RTD(judged_tokens=JudgedTokens.CHOSEN))
    made = learner(*objectives)
    logits_T, answers = judged(made)
    at = answers.positions
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        logits_T[at], answers.replaced[at].float(), reduction="sum"
    )
    term = made(batch(), objectives)[1]
    assert float(term.total.detach()) == pytest.approx(float(expected), rel=1e-5)
    assert term.count == 6 == objectives[1].num_predictions(instance())


def test_special_tokens_are_judged_and_never_replaced() -> None:
    _, answers = judged(learner())
    borders = [0, 6, 7, 11, 12, 20]
    assert not answers.replaced[borders].any()
    assert len(answers.replaced) == RTD().num_predictions(instance())


def test_names_in_a_checkpoint() -> None:
    names = [name for name in learner().named_weights() if name.startswith("heads.replaced")]
    assert names == [
        f"heads.replaced.discriminator_head.{part}"
        for part in ("dense.weight", "dense.bias", "classify.weight", "classify.bias")
    ]
