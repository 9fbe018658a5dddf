"""The generator ahead of the trunk: what it shares, what it draws, what it writes, and whom it learns from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from little_guess import POSITIONS, ROWS, SIZE, TRUNK, batch, instance, learner, original

from unmask.errors import RecipeError
from unmask.nets.answers import ReplacedAnswers
from unmask.nets.batch import Batch, collate
from unmask.nets.trunk import Trunk
from unmask.objectives.guess import Guess, Tie
from unmask.objectives.guessing import Guessing, cloze_of, drawn, written
from unmask.objectives.mlm import MLM
from unmask.objectives.part import Ahead, Taught
from unmask.objectives.replaced import Replaced
from unmask.train.learner import Learner


def guessing(made: Learner) -> Guessing:
    head = made.heads["guess"]
    assert isinstance(head, Guessing)
    return head


def replaced_of(shown: Batch) -> ReplacedAnswers:
    (answers,) = (some for some in shown.answers if isinstance(some, ReplacedAnswers))
    return answers


def test_it_is_taught_and_acts_ahead() -> None:
    assert isinstance(Guess(), Ahead)
    assert isinstance(Guess(), Taught)
    assert not isinstance(Replaced(), Ahead)


@pytest.mark.parametrize(
    ("width", "trunk", "found"),
    [
        (1 / 4, Trunk(depth=12, width=256, heads=4, inner=1024, embedding=128), (12, 64, 1, 256)),
        (1 / 3, Trunk(depth=12, width=768, heads=12, inner=3072), (12, 256, 4, 1024)),
        (1 / 4, Trunk(depth=24, width=1024, heads=16, inner=4096), (24, 256, 4, 1024)),
        (1 / 4, Trunk(depth=2, width=32, heads=2, inner=64), (2, 8, 1, 16)),
        (0.3, Trunk(depth=2, width=40, heads=8, inner=64), (2, 12, 2, 19)),
    ],
)
def test_its_shape_is_a_part_of_the_trunks(width: float, trunk: Trunk, found: tuple[int, ...]) -> None:
    shape = Guess(width=width).shape(trunk)
    assert (shape.depth, shape.width, shape.heads, shape.inner) == found
    assert shape.token_width == trunk.token_width


def test_embeddings_are_the_same_objects_and_are_saved_once() -> None:
    made = learner()
    mine, theirs = guessing(made).network.embed, made.trunk.embed
    for name in ("token", "position", "segment", "norm"):
        assert getattr(mine, name) is getattr(theirs, name)
    assert guessing(made).tokens.token is theirs.token
    assert mine.project is not None
    assert theirs.project is None
    names = set(made.weights())
    assert "trunk.embed.token.weight" in names
    assert {name for name in names if name.startswith("heads.guess.network.embed")} == {
        "heads.guess.network.embed.project.weight",
        "heads.guess.network.embed.project.bias",
    }


def test_nothing_or_everything_can_be_tied() -> None:
    apart = learner(Guess(tie=Tie.NONE), Replaced())
    ours = {id(parameter) for parameter in guessing(apart).parameters()}
    assert not ours & {id(parameter) for parameter in apart.trunk.parameters()}
    assert guessing(apart).network.embed.token.weight.shape == (SIZE, TRUNK.width // 4)
    assert guessing(apart).network.embed.project is None
    one = learner(Guess(width=1.0, tie=Tie.ALL), Replaced())
    assert guessing(one).network is one.trunk
    assert len(one.blocks()) == TRUNK.depth
    assert len(apart.blocks()) == 2 * TRUNK.depth
    with pytest.raises(RecipeError, match=r"needs width 1 and depth 1; found a generator of depth 2 and width 8 .* 32"):
        learner(Guess(tie=Tie.ALL), Replaced())


@pytest.mark.parametrize("guess", [{"width": 0.0}, {"depth": 1.5}])
def test_a_size_that_is_no_part_is_refused(guess: dict[str, float]) -> None:
    with pytest.raises(RecipeError, match="above 0 and at most 1, as parts of the trunk"):
        Guess(**guess)


def test_no_gradient_of_the_discriminator_reaches_the_generator() -> None:
    made = learner()
    guess, judged = made(batch(), (Guess(), Replaced()))
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
    made(batch(), (Guess(), Replaced()))[0].total.backward()
    assert all(parameter.grad is None for parameter in made.trunk.layers.parameters())
    assert made.trunk.embed.token.weight.grad is not None


def test_the_truth_written_back_replaces_nothing() -> None:
    shown = written(batch(), cloze_of(batch()).answers_P)
    assert not replaced_of(shown).replaced_T.any()
    assert torch.equal(shown.tokens.ids_T, original())


def test_what_was_shown_before_is_gone_and_all_else_is_the_text() -> None:
    """Neither a mask nor a token that was kept is left: every chosen place has a drawn token, others are the text's."""
    asked = cloze_of(batch())
    guess_P = torch.full_like(asked.answers_P, 39)
    guess_P[1] = asked.answers_P[1]
    shown = written(batch(), guess_P)
    expected = original().index_copy(0, asked.positions_P, guess_P)
    assert torch.equal(shown.tokens.ids_T, expected)
    assert torch.equal(replaced_of(shown).replaced_T, expected != original())
    assert int(replaced_of(shown).replaced_T.sum()) == len(guess_P) - 1
    assert cloze_of(shown) is not None


def test_draws_follow_the_softmax() -> None:
    logits = torch.randn(1, 7, generator=torch.Generator().manual_seed(1)) * 2
    chances = torch.rand(200_000, generator=torch.Generator().manual_seed(2))
    found = drawn(logits.expand(len(chances), -1), chances)
    shares = torch.bincount(found, minlength=7) / len(chances)
    law = logits.softmax(-1)[0]
    assert ((shares - law).abs() < 5 * (law * (1 - law) / len(chances)).sqrt()).all()


def test_a_token_without_any_chance_is_never_drawn() -> None:
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf]])
    chances = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0 - 2**-24])
    assert drawn(logits.expand(5, -1), chances).tolist() == [1, 1, 3, 3, 3]
    assert drawn(torch.zeros(1, 3), torch.ones(1)).tolist() == [2]  # rounded up, but still a token


def test_chances_are_uniform_and_differ_from_place_to_place() -> None:
    rows = [[1, *np.random.default_rng(seed).integers(5, SIZE, 12).tolist(), 2] for seed in range(500)]
    asked = cloze_of(collate(instance(rows, [range(1, 13)] * len(rows))))
    chances = asked.chance_P
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
    one, other = (cloze_of(collate(instance([ROWS[2]], [holes]))).chance_P for holes in ((3, 4, 7), (2, 4, 7)))
    assert not torch.isin(one, other).any()


def test_the_answers_of_the_trunk_stand_in_the_place_of_their_objective() -> None:
    for order in ((Guess(), Replaced()), (Replaced(), Guess())):
        made = learner(*order)
        terms = made(batch(), order)
        counts = {"guess": 6, "replaced": len(original())}
        assert [term.count for term in terms] == [counts[one.name] for one in order]
        assert tuple(one.asked(instance()) for one in order) == tuple(term.count for term in terms)


def test_an_mlm_after_it_reads_guesses_and_says_the_truth() -> None:
    """Replace MLM: the head is asked at the chosen places, and the trunk has seen no mask."""
    made = learner(Guess(), MLM())
    asked = cloze_of(batch())
    with torch.no_grad():
        _, said = made(batch(), (Guess(), MLM()))
        shown = made.heads["guess"](batch())[1]
        logits = made.heads["mlm"].tokens(made.trunk(shown.tokens).last_TD[asked.positions_P])
    assert float(said.total) == pytest.approx(
        float(torch.nn.functional.cross_entropy(logits, asked.answers_P, reduction="sum")), rel=1e-5
    )


def test_it_is_built_for_any_trunk() -> None:
    shapes = [
        replace(TRUNK, embedding=16),
        replace(TRUNK, segments=0),
        replace(TRUNK, first_position=2),
    ]
    for trunk in shapes:
        made = learner(trunk=trunk)
        assert guessing(made).network.embed.positions == POSITIONS
        assert all(bool(term.total.isfinite()) for term in made(batch(), (Guess(), Replaced())))
