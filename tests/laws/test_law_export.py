"""Law 10, Export: import after export is the identity, and both libraries compute the same.

It holds for every member that can be trained, in its own dialect and with its own kind of vocabulary. What a member has
beside its trunk, its head for tokens, its head for rows and its head for replaced tokens is named here: no class of
`transformers` has a place for it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from law_nets import trained_members
from law_texts import SPECS, Ground

from unmask.config.model_type import ModelType
from unmask.config.network import Sharing, TransformerConfig
from unmask.core.codec import encode
from unmask.core.errors import InputError
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.interop.hf.load import load_hf_model
from unmask.interop.hf.lookup import best_architecture, can_express, model_type_for
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.interop.hf.save import UNSHARED, export_hf
from unmask.loading.from_checkpoint import generator_from_state, model_from_state
from unmask.loading.warm_start import load_matching_weights
from unmask.nets.model import EncoderWithHeads
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import require_trainable
from unmask.train.multi_head_model import MultiHeadModel

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
NEAR = 1e-5
"""Both compute in float32, in another order."""
POSITIONS = 128
BEHIND = frozenset({"sbo", "reply", "guess"})
"""Heads that stay behind: of two truths about rows one has a place, and a generator is a network of its own."""


@cache
def ground_for(recipe: Recipe) -> Ground:
    """A small vocabulary of the kind that the member has."""
    match recipe.tokenizer:
        case ByteBPE():
            return Ground.of(SPECS["byte-bpe"])
        case Unigram():
            return Ground.of(SPECS["unigram"])
    return Ground.of(SPECS["wordpiece"])


EXPORTED = [one for one in trained_members() if can_express(one.model_type, one.network)]
OTHERS = [one for one in trained_members() if not can_express(one.model_type, one.network)]


def learner_of(recipe: Recipe) -> MultiHeadModel:
    return MultiHeadModel(
        recipe.network, require_trainable(recipe.objectives), ground_for(recipe).vocab.size, POSITIONS
    )


def drawn(recipe: Recipe) -> MultiHeadModel:
    """A learner whose every number was drawn, so that no name can be mistaken for another unnoticed."""
    learner, generator = learner_of(recipe), torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in learner.named_parameters():
            centre = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.copy_(centre + 0.1 * torch.randn(parameter.shape, generator=generator))
    return learner


def exported(model: EncoderWithHeads, recipe: Recipe, folder: Path) -> tuple[Architecture, EncoderWithHeads]:
    """Write a network in the dialect of its recipe, hold the proof to the law, and read it back."""
    architecture = best_architecture(model, model_type_for(model.config, recipe.model_type))
    proof = export_hf(model, ground_for(recipe).tokenizer, folder, architecture)
    assert max(proof.max_hidden_difference, proof.max_logits_difference) < NEAR
    assert proof.num_tokens > 100
    back, tokenizer = load_hf_model(folder)
    assert tokenizer.vocab.size == ground_for(recipe).vocab.size
    return architecture, back


@pytest.mark.parametrize("recipe", EXPORTED, ids=lambda recipe: recipe.name)
def test_a_member_comes_back_from_an_export_as_it_was(recipe: Recipe, tmp_path: Path) -> None:
    learner = drawn(recipe)
    model = model_from_state(learner.named_weights(), recipe.network, ground_for(recipe).vocab.size, POSITIONS)
    architecture, back = exported(model, recipe, tmp_path / "out")
    assert architecture.model_type is recipe.model_type
    again = learner_of(recipe)
    behind = load_matching_weights(again, back)
    assert set(behind) == BEHIND & learner.heads.keys()
    kept = {name: weight for name, weight in learner.named_weights().items() if name.split(".")[1] not in behind}
    assert len(kept) > 20
    for name, weight in kept.items():
        assert torch.equal(weight, again.get_parameter(name)), name


@pytest.mark.parametrize("recipe", EXPORTED, ids=lambda recipe: recipe.name)
def test_a_generator_is_a_network_of_its_own(recipe: Recipe, tmp_path: Path) -> None:
    learner = drawn(recipe)
    sizes = ground_for(recipe).vocab.size, POSITIONS
    said = encode(recipe)
    assert isinstance(said, dict)
    generator = generator_from_state(learner.named_weights(), said, recipe.network, *sizes)
    assert (generator is not None) == ("guess" in learner.heads)
    if generator is None:
        return
    architecture, back = exported(generator, recipe, tmp_path / "out")
    assert architecture.task is HFTask.MASKED_LM
    again = learner_of(recipe)
    assert load_matching_weights(again, model_from_state(learner.named_weights(), recipe.network, *sizes), back) == ()
    for name, weight in learner.named_weights().items():
        assert torch.equal(weight, again.get_parameter(name)), name


@pytest.mark.parametrize("sharing", [Sharing.ATTENTION, Sharing.FEED_FORWARD])
@pytest.mark.parametrize("recipe", EXPORTED, ids=lambda recipe: recipe.name)
def test_sharing_that_has_no_name_is_written_out(recipe: Recipe, sharing: Sharing, tmp_path: Path) -> None:
    """The numbers are the same, the layers are apart, and whoever reads the card knows."""
    recipe = replace(recipe, network=replace(recipe.network, sharing=sharing))
    model = model_from_state(drawn(recipe).named_weights(), recipe.network, ground_for(recipe).vocab.size, POSITIONS)
    architecture, back = exported(model, recipe, tmp_path / "out")
    assert back.config.sharing is Sharing.NONE
    for name, tensor in back.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    assert UNSHARED.split("{}")[0] in (tmp_path / "out" / "README.md").read_text()
    assert architecture.model_type is recipe.model_type


@pytest.mark.parametrize("recipe", OTHERS, ids=lambda recipe: recipe.name)
def test_a_member_that_no_class_describes_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    if not isinstance(recipe.network, TransformerConfig):
        pytest.skip("only encoders are opened for an export")
    sizes = ground_for(recipe).vocab.size, POSITIONS
    model = model_from_state(drawn(recipe).named_weights(), recipe.network, *sizes)
    with pytest.raises(InputError, match="cannot be written as"):
        exported(model, recipe, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_dialect_has_a_member() -> None:
    assert {recipe.model_type for recipe in trained_members()} == {*ModelType}
