"""The generator ahead of the trunk: what it shares, what it draws, what it writes, and whom it learns from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from little_guess import POSITIONS, ROWS, SIZE, TRUNK, batch, instance, learner, original

from unmask.config.network import TransformerConfig
from unmask.core.errors import RecipeError
from unmask.core.records import Cloze, ReplacedTokens
from unmask.nets.batch.batch import Batch, collate
from unmask.objectives.generator import Generator, Tie
from unmask.objectives.heads.generator import GeneratorModule, fill_samples, sample_from_logits
from unmask.objectives.mlm import MLM
from unmask.objectives.rtd import RTD
from unmask.train.multi_head_model import MultiHeadModel


def guessing(made: MultiHeadModel) -> GeneratorModule:
    head = made.heads["guess"]
    assert isinstance(head, GeneratorModule)
    return head


def replaced_of(shown: Batch) -> ReplacedTokens:
    answers = shown.target(ReplacedTokens)
    return answers


def test_it_is_taught_and_acts_ahead() -> None:
    assert Generator().has_head
    assert Generator().has_head
    assert not RTD().rewrites_inputs


@pytest.mark.parametrize(
    ("width", "trunk", "found"),
    [
        (1 / 4, TransformerConfig(depth=12, width=256, heads=4, ffn_width=1024, embedding_width=128), (12, 64, 1, 256)),
        (1 / 3, TransformerConfig(depth=12, width=768, heads=12, ffn_width=3072), (12, 256, 4, 1024)),
        (1 / 4, TransformerConfig(depth=24, width=1024, heads=16, ffn_width=4096), (24, 256, 4, 1024)),
        (1 / 4, TransformerConfig(depth=2, width=32, heads=2, ffn_width=64), (2, 8, 1, 16)),
        (0.3, TransformerConfig(depth=2, width=40, heads=8, ffn_width=64), (2, 12, 2, 19)),
    ],
)
def test_its_shape_is_a_part_of_the_trunks(width: float, trunk: TransformerConfig, found: tuple[int, ...]) -> None:
    shape = Generator(width=width).config_for(trunk)
    assert (shape.depth, shape.width, shape.heads, shape.ffn_width) == found
    assert shape.token_width == trunk.token_width


def test_embeddings_are_the_same_objects_and_are_saved_once() -> None:
    made = learner()
    mine, theirs = guessing(made).encoder.embed, made.network.embed
    for name in ("token", "position", "segment", "norm"):
        assert getattr(mine, name) is getattr(theirs, name)
    assert guessing(made).lm_head.token is theirs.token
    assert mine.project is not None
    assert theirs.project is None
    names = set(made.named_weights())
    assert "network.embed.token.weight" in names
    assert {name for name in names if name.startswith("heads.guess.encoder.embed")} == {
        "heads.guess.encoder.embed.project.weight",
        "heads.guess.encoder.embed.project.bias",
    }


def test_nothing_or_everything_can_be_tied() -> None:
    apart = learner(Generator(tie=Tie.NONE), RTD())
    ours = {id(parameter) for parameter in guessing(apart).parameters()}
    assert not ours & {id(parameter) for parameter in apart.network.parameters()}
    assert guessing(apart).encoder.embed.token.weight.shape == (SIZE, TRUNK.width // 4)
    assert guessing(apart).encoder.embed.project is None
    one = learner(Generator(width=1.0, tie=Tie.ALL), RTD())
    assert guessing(one).encoder is one.network
    assert len(one.blocks()) == TRUNK.depth
    assert len(apart.blocks()) == 2 * TRUNK.depth
    with pytest.raises(RecipeError, match=r"needs width 1 and depth 1; found a generator of depth 2 and width 8 .* 32"):
        learner(Generator(tie=Tie.ALL), RTD())


@pytest.mark.parametrize("guess", [{"width": 0.0}, {"depth": 1.5}])
def test_a_size_that_is_no_part_is_refused(guess: dict[str, float]) -> None:
    with pytest.raises(RecipeError, match="above 0 and at most 1, as fractions of the network"):
        Generator(**guess)


def test_no_gradient_of_the_discriminator_reaches_the_generator() -> None:
    made = learner()
    guess, judged = made(batch(), (Generator(), RTD()))
    judged.total.backward(retain_graph=True)
    own = {
        name: p for name, p in guessing(made).named_parameters() if "embed." not in name and "tokens.token" not in name
    }
    assert len(own) > 20
    assert all(parameter.grad is None for parameter in own.values())
    guess.total.backward()
    assert all(parameter.grad is not None for parameter in own.values())


def test_the_generator_learns_nothing_in_the_blocks_of_the_trunk() -> None:
    made = learner()
    made(batch(), (Generator(), RTD()))[0].total.backward()
    assert all(parameter.grad is None for parameter in made.network.layers.parameters())
    assert made.network.embed.token.weight.grad is not None


def test_the_truth_written_back_replaces_nothing() -> None:
    shown = fill_samples(batch(), batch().target(Cloze).answers)
    assert not replaced_of(shown).replaced.any()
    assert torch.equal(shown.tokens.ids_T, original())


def test_what_was_shown_before_is_gone_and_all_else_is_the_text() -> None:
    """Neither a mask nor a token that was kept is left: every chosen place has a drawn token, others are the text's."""
    asked = batch().target(Cloze)
    guess_P = torch.full_like(asked.answers, 39)
    guess_P[1] = asked.answers[1]
    shown = fill_samples(batch(), guess_P)
    expected = original().index_copy(0, asked.positions, guess_P)
    assert torch.equal(shown.tokens.ids_T, expected)
    assert torch.equal(replaced_of(shown).replaced, expected != original())
    assert int(replaced_of(shown).replaced.sum()) == len(guess_P) - 1
    assert shown.target(Cloze) is not None


def test_draws_follow_the_softmax() -> None:
    logits = torch.randn(1, 7, generator=torch.Generator().manual_seed(1)) * 2
    chances = torch.rand(200_000, generator=torch.Generator().manual_seed(2))
    found = sample_from_logits(logits.expand(len(chances), -1), chances)
    shares = torch.bincount(found, minlength=7) / len(chances)
    law = logits.softmax(-1)[0]
    assert ((shares - law).abs() < 5 * (law * (1 - law) / len(chances)).sqrt()).all()


def test_a_token_without_any_chance_is_never_drawn() -> None:
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf]])
    chances = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0 - 2**-24])
    assert sample_from_logits(logits.expand(5, -1), chances).tolist() == [1, 1, 3, 3, 3]
    assert sample_from_logits(torch.zeros(1, 3), torch.ones(1)).tolist() == [2]  # rounded up, but still a token


def test_chances_are_uniform_and_differ_from_place_to_place() -> None:
    rows = [[1, *np.random.default_rng(seed).integers(5, SIZE, 12).tolist(), 2] for seed in range(500)]
    asked = collate(instance(rows, [range(1, 13)] * len(rows))).target(Cloze)
    chances = asked.uniform
    assert len(chances.unique()) == len(chances) == 6000
    assert torch.bincount((chances * 10).long(), minlength=10).sub(600).abs().max() < 5 * 540**0.5


def test_a_row_is_filled_alike_wherever_it_lies() -> None:
    made = learner()
    whole = made.heads["guess"](batch())[1].tokens.ids_T
    pieces = [collate(instance([row], [holes])) for row, holes in zip(ROWS, ((2, 4), (1,), (3, 4, 7)), strict=True)]
    assert torch.equal(
        whole, torch.cat([made.heads["guess"](piece)[1].tokens.ids_T for piece in reversed(pieces)][::-1])
    )


def test_draws_do_not_depend_on_anyone_elses() -> None:
    """Neither the state of torch's generator nor training or trial decides what is drawn: only rows and weights do."""
    made = learner()
    found = []
    for seed, training in ((1, True), (2, True), (3, False)):
        torch.manual_seed(seed)
        made.train(training)
        found.append(made.heads["guess"](batch())[1].tokens.ids_T)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_another_mask_of_the_same_row_has_other_draws() -> None:
    one, other = (collate(instance([ROWS[2]], [holes])).target(Cloze).uniform for holes in ((3, 4, 7), (2, 4, 7)))
    assert not torch.isin(one, other).any()


def test_the_answers_of_the_trunk_stand_in_the_place_of_their_objective() -> None:
    for order in ((Generator(), RTD()), (RTD(), Generator())):
        made = learner(*order)
        terms = made(batch(), order)
        counts = {"guess": 6, "replaced": len(original())}
        assert [term.count for term in terms] == [counts[one.name] for one in order]
        assert tuple(one.num_predictions(instance()) for one in order) == tuple(term.count for term in terms)


def test_an_mlm_after_it_reads_guesses_and_says_the_truth() -> None:
    """Replace MLM: the head is asked at the chosen places, and the trunk has seen no mask."""
    made = learner(Generator(), MLM())
    asked = batch().target(Cloze)
    with torch.no_grad():
        _, said = made(batch(), (Generator(), MLM()))
        shown = made.heads["guess"](batch())[1]
        logits = made.heads["mlm"].lm_head(made.network(shown.tokens).last_TD[asked.positions])
    assert float(said.total) == pytest.approx(
        float(torch.nn.functional.cross_entropy(logits, asked.answers, reduction="sum")), rel=1e-5
    )


def test_it_is_built_for_any_trunk() -> None:
    shapes = [
        replace(TRUNK, embedding_width=16),
        replace(TRUNK, num_segments=0),
        replace(TRUNK, position_offset=2),
    ]
    for trunk in shapes:
        made = learner(trunk=trunk)
        assert guessing(made).encoder.embed.max_positions == POSITIONS
        assert all(bool(term.total.isfinite()) for term in made(batch(), (Generator(), RTD())))
