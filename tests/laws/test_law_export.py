"""Law 10, Export: import after export is the identity, and both libraries compute the same.

A shape that no architecture of `transformers` can describe yet is skipped, with the sentence that refuses it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from law_nets import ground, trained_members

from unmask.errors import InputError
from unmask.export.bert import fitting
from unmask.export.bert_config import write_config
from unmask.export.read import load
from unmask.export.source import model_of
from unmask.export.start import fill_learner
from unmask.export.write import export
from unmask.tasks import Recipe
from unmask.train.learner import Learner
from unmask.train.lessons import learnable

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
NEAR = 1e-5
"""Both compute in float32, in another order."""
POSITIONS = 128


def learner_of(recipe: Recipe) -> Learner:
    return Learner(recipe.trunk, learnable(recipe.objectives), ground().vocab.size, POSITIONS)


def drawn(recipe: Recipe) -> Learner:
    """A learner whose every number was drawn, so that no name can be mistaken for another unnoticed."""
    learner, generator = learner_of(recipe), torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in learner.named_parameters():
            centre = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.copy_(centre + 0.1 * torch.randn(parameter.shape, generator=generator))
    return learner


@pytest.mark.parametrize("recipe", trained_members(), ids=lambda recipe: recipe.name)
def test_a_member_comes_back_from_an_export_as_it_was(recipe: Recipe, tmp_path: Path) -> None:
    learner = drawn(recipe)
    model = model_of(learner.weights(), recipe.trunk, ground().vocab.size, POSITIONS)
    try:
        write_config(model, 0, fitting(model))
    except InputError as refusal:
        pytest.skip(str(refusal))
    proof = export(model, ground().tokenizer, tmp_path / "out", fitting(model))
    assert max(proof.hidden, proof.logits) < NEAR
    assert proof.tokens > 100
    back, tokenizer = load(tmp_path / "out")
    assert tokenizer.vocab.size == ground().vocab.size
    again = learner_of(recipe)
    assert fill_learner(again, back) == ()
    for name, weight in learner.weights().items():
        assert torch.equal(weight, again.get_parameter(name)), name


def test_some_member_is_not_skipped() -> None:
    assert any(recipe.trunk.embedding == 0 and recipe.trunk.segments for recipe in trained_members())
