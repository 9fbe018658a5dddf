"""ELECTRA as published: the sizes of the paper, and the ablations that a user can type."""

from __future__ import annotations

import pytest
import torch

from unmask.config.optim import LossWeighting
from unmask.core.codec import decode, encode
from unmask.data.corrupt.masking import MaskTokens
from unmask.members import member, resolve_member
from unmask.nets.encoder import TransformerEncoder, num_parameters
from unmask.objectives.all_tokens_mlm import AllTokensMLM
from unmask.objectives.generator import Generator, Tie
from unmask.objectives.mlm import MLM
from unmask.objectives.protocol import Objective
from unmask.objectives.rtd import RTD, JudgedTokens
from unmask.recipes.electra import SIZES, electra
from unmask.tasks.recipe import Recipe

TASK = "stages.0.tasks.0."


@pytest.mark.parametrize(("size", "found"), [("small", 13_483_008), ("base", 108_891_648), ("large", 334_092_288)])
def test_the_discriminator_has_the_published_number_of_parameters(size: str, found: int) -> None:
    with torch.device("meta"):
        assert (
            num_parameters(TransformerEncoder(member("electra", size).network, vocab_size=30_522, max_positions=512))
            == found
        )


@pytest.mark.parametrize(
    ("size", "numbers"),
    [
        ("small", (0.15, 1 / 4, 128, 128, 5e-4, 0.01)),
        ("base", (0.15, 1 / 3, 512, 256, 2e-4, 10 / 766)),
        ("large", (0.25, 1 / 4, 512, 2048, 2e-4, 10 / 400)),
        ("tiny", (0.15, 1 / 4, 128, 128, 5e-4, 0.01)),
    ],
)
def test_the_numbers_of_the_paper(size: str, numbers: tuple[float, ...]) -> None:
    recipe = member("electra", size)
    (stage,) = recipe.stages
    corrupt, guess = stage.tasks[0].corruption, stage.tasks[0].objectives[0]
    assert isinstance(corrupt, MaskTokens)
    assert isinstance(guess, Generator)
    share = recipe.optim.schedule.warmup.fraction
    rate = recipe.optim.optimizer.lr
    assert (corrupt.select.rate, guess.width, stage.max_length, stage.batch_size, rate, share) == pytest.approx(numbers)
    assert (corrupt.replace.mask, corrupt.replace.keep) == (0.85, 0.15)
    assert [one.weight for one in stage.tasks[0].objectives] == [1.0, 50.0]


def test_every_size_has_a_generator() -> None:
    for size in SIZES.values():
        (guess, _) = electra(size).tasks[0].objectives
        assert isinstance(guess, Generator)
        assert guess.config_for(electra(size).network).width < size.width


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (f"{TASK}objectives.1.judged_tokens=chosen", RTD(judged_tokens=JudgedTokens.CHOSEN)),
        (f"{TASK}objectives.1=MLM()", MLM()),
        (f"{TASK}objectives.1=AllTokensMLM()", AllTokensMLM()),
    ],
)
def test_an_ablation_can_be_typed_and_written(typed: str, says: Objective) -> None:
    changed = resolve_member("electra", [typed], "small")
    assert changed == electra(SIZES["small"], says)
    assert changed.objectives[1] == says
    assert decode(encode(changed), Recipe) == changed


def test_balance_and_ties_can_be_typed() -> None:
    changed = resolve_member(
        "electra", ["loss_weighting=learned", f"{TASK}objectives.0.tie=all", f"{TASK}objectives.0.width=1"]
    )
    assert changed.loss_weighting is LossWeighting.LEARNED
    assert changed.objectives[0] == Generator(width=1.0, tie=Tie.ALL)
    assert electra(loss_weighting=LossWeighting.LEARNED).loss_weighting is LossWeighting.LEARNED
