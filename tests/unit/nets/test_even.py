"""Evened batches: whatever is added at their end, every sum, count and gradient is that of the batch as it came."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

sys.path.append(str(Path(__file__).parent.parent.parent / "laws"))
from law_nets import LENGTH, dry, small, text, trained_members, training, uneven

from unmask.nets.answers import IGNORED, ClozeAnswers, FactAnswers, LabelAnswers
from unmask.nets.attention import Lowering
from unmask.nets.batch import Batch
from unmask.nets.carry import on_device, tensors_of
from unmask.nets.even import Room, can_even, even, room_for
from unmask.nets.layout import Borders, Sight
from unmask.nets.reading import ReadOut
from unmask.nets.transformer import Tokens, Transformer, draw_weights
from unmask.nets.trunk import Trunk
from unmask.objectives.every import Every
from unmask.objectives.guess import Guess
from unmask.objectives.heads import SayFact, Term
from unmask.objectives.mlm import MLM
from unmask.objectives.part import Taught
from unmask.objectives.replaced import Replaced, Where
from unmask.tasks import Recipe
from unmask.train.course import Crew
from unmask.train.learner import Learner
from unmask.train.step import Loaded

CPU = torch.device("cpu")
SAME, GRADIENT = 1e-6, 1e-5
"""float32, where a kernel groups its sums in another way; of the largest number of a gradient."""
MEMBERS = [dry(recipe) for recipe in trained_members()]
WRITTEN: list[tuple[Taught, ...]] = [
    (Guess(), Replaced(where=Where.CHOSEN)),
    (Guess(), MLM()),
    (Guess(), Every()),
]
"""What no member learns as it is, but some can be made to."""


def batch_of(recipe: Recipe) -> tuple[Batch, Sequence[Taught]]:
    """Rows of unequal length, as a step sees them."""
    course = training(recipe, 1).course
    lesson = course.lesson(uneven(course), Crew())
    return Loaded.of(lesson, CPU).batches[0], lesson.objectives


def learner(recipe: Recipe, objectives: Sequence[Taught]) -> Learner:
    made = Learner(recipe.trunk, objectives, text().vocab.size, 2 * LENGTH)
    made.draw(0)
    return made


def learned(made: Learner, batch: Batch, objectives: Sequence[Taught]) -> tuple[tuple[Term, ...], dict[str, Tensor]]:
    """The terms, and the gradient of their sum."""
    made.zero_grad()
    terms = made(batch, objectives)
    torch.stack([term.total for term in terms]).sum().backward()
    return terms, {name: p.grad.clone() for name, p in made.named_parameters() if p.grad is not None}


def check_same(made: Learner, batch: Batch, evened: Batch, objectives: Sequence[Taught]) -> None:
    (terms, gradients), (others, filled) = (learned(made, one, objectives) for one in (batch, evened))
    for term, other in zip(terms, others, strict=True):
        assert float(other.total.detach()) == pytest.approx(float(term.total.detach()), rel=SAME)
        assert (int(other.right), other.count) == (int(term.right), term.count)
    assert gradients.keys() == filled.keys()
    for name, gradient in gradients.items():
        assert (gradient - filled[name]).abs().max() <= GRADIENT * gradient.abs().max(), name


@pytest.mark.parametrize("lowering", [Lowering.SDPA, Lowering.DENSE, Lowering.EACH])
@pytest.mark.parametrize("recipe", MEMBERS, ids=lambda recipe: recipe.name)
def test_every_member_learns_the_same(recipe: Recipe, lowering: Lowering) -> None:
    batch, objectives = batch_of(recipe)
    made = learner(recipe, objectives)
    for block in made.blocks():
        block.attend.work.lowering = lowering
    check_same(made, batch, even(batch, room_for([batch], LENGTH)), objectives)


@pytest.mark.parametrize("objectives", WRITTEN, ids=lambda some: " and ".join(one.name for one in some))
def test_what_reads_the_writing_of_a_generator_learns_the_same(objectives: tuple[Taught, ...]) -> None:
    recipe = next(one for one in MEMBERS if any(isinstance(o, Guess) for o in one.objectives))
    batch, _ = batch_of(recipe)
    check_same(learner(recipe, objectives), batch, even(batch, room_for([batch], LENGTH)), objectives)


@pytest.mark.parametrize("read", list(ReadOut))
def test_a_fact_is_read_from_its_own_row_only(read: ReadOut) -> None:
    trunk = small(MEMBERS[0]).trunk
    head = SayFact(trunk, "next", 2, read=read)
    batch, _ = batch_of(MEMBERS[0])
    net = network(replace(trunk, dropout=0.0, attention_dropout=0.0))
    found = [head(net(one.tokens), one) for one in (batch, even(batch, room_for([batch], LENGTH)))]
    assert float(found[1].total.detach()) == pytest.approx(float(found[0].total.detach()), rel=SAME)
    assert [(int(one.right), one.count) for one in found] == [(int(found[0].right), len(batch.first_B))] * 2


def network(trunk: Trunk) -> Transformer:
    made = Transformer(trunk, text().vocab.size, 2 * LENGTH)
    draw_weights(made, 0.1, torch.Generator().manual_seed(0))
    return made


@pytest.mark.parametrize("lowering", [Lowering.AUTO, Lowering.SDPA, Lowering.DENSE, Lowering.EACH])
@pytest.mark.parametrize("sight", list(Sight))
def test_nobody_sees_what_was_added(sight: Sight, lowering: Lowering) -> None:
    """Other tokens in the added places change no state of the text; every sight keeps its own rule."""
    prefix, reach = [2, 0, 5] if sight is Sight.PREFIX else [], 3 if sight is Sight.NEAR else 0
    borders = Borders.of([0, 5, 6, 18], "cpu", sight, prefix, reach)
    ids = torch.arange(18) % 7 + 5
    batch = Batch(Tokens(ids, torch.arange(18) % 6, torch.zeros_like(ids), borders), torch.tensor([0, 5, 6]), ())
    evened = even(batch, Room(tokens=40, sequences=8, longest=16, rows=4, answers=1))
    assert (evened.tokens.borders.sight, evened.tokens.borders.reach) == (sight, reach)
    net = network(small(MEMBERS[0]).trunk).eval()
    for block in net.blocks():
        block.attend.work.lowering = lowering
    others = replace(evened.tokens, ids_T=torch.where(evened.real_T, evened.tokens.ids_T, 9))
    states = [net(one).last_TD[:18] for one in (batch.tokens, evened.tokens, others)]
    assert torch.allclose(states[0], states[1], atol=1e-6)
    assert torch.equal(states[1], states[2])


def test_the_shape_is_that_of_the_room_whatever_comes() -> None:
    room = Room(tokens=1024, sequences=64, longest=LENGTH, rows=20, answers=128)
    shapes = set()
    for recipe in MEMBERS[:1]:
        course = training(recipe, 1).course
        for step in range(3):
            lesson = course.lesson(replace(uneven(course), step=step), Crew())
            evened = Loaded.of(lesson, CPU).batches[0]
            shapes.add(tuple(tuple(tensor.shape) for tensor in tensors_of(even(evened, room))))
    assert len(shapes) == 1


def test_what_was_added_is_marked_on_the_host_and_on_the_device() -> None:
    batch, _ = batch_of(MEMBERS[0])
    count, room = len(batch.tokens.ids_T), room_for([batch], LENGTH)
    evened = even(batch, room)
    assert (len(evened.tokens.ids_T), int(evened.real_T.sum()), evened.spare) == (
        room.tokens,
        count,
        room.tokens - count,
    )
    for before, after in zip(batch.answers, evened.answers, strict=True):
        if isinstance(before, ClozeAnswers) and isinstance(after, ClozeAnswers):
            assert torch.equal(after.positions_P[: -after.spare], before.positions_P)
            assert not evened.real_T[after.positions_P[-after.spare :]].any()
            assert (after.answers_P[-after.spare :] == IGNORED).all()
        if isinstance(before, FactAnswers) and isinstance(after, FactAnswers):
            assert len(after.value_B) - after.spare == len(before.value_B)
    assert evened.tokens.position_T.max() < LENGTH
    assert int(evened.tokens.borders.offsets_S1.diff().max()) <= room.longest


def rows_of(*lengths: int) -> Batch:
    """Rows of so many tokens, of which nothing is asked."""
    ends = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    nothing = torch.zeros(ends[-1], dtype=torch.int64)
    return Batch(Tokens(nothing, nothing, nothing, Borders.of(ends)), torch.tensor(ends[:-1]), ())


@pytest.mark.parametrize(
    ("batches", "tokens"),
    [
        ([[512] * 256], 131_072 + 32),  # full rows are round already, and get a few tokens for the row that is added
        ([[128] * 128], 16_384 + 32),
        ([[512] * 255 + [511]], 131_072),  # one token is left over, and takes that row
        ([[512] * 255 + [500]], 131_072),
        ([[512] * 256 + [1]], 131_072 + 1024),
        ([[128] * 8, [512, 512]], 1024 + 32),  # micro-batches have one room: six rows and one are added to the second
        ([[1] * 40, [40]], 64 + 32),  # forty rows are added, for which the rounding has no place
    ],
)
def test_few_tokens_are_added(batches: list[list[int]], tokens: int) -> None:
    made = [rows_of(*lengths) for lengths in batches]
    room = room_for(made, 512)
    assert room.tokens == tokens
    for batch in made:
        assert len(even(batch, room).tokens.ids_T) == tokens


@pytest.mark.parametrize("small_part", ["tokens", "sequences", "longest", "rows", "answers"])
def test_a_room_that_is_too_small_is_refused(small_part: str) -> None:
    batch, _ = batch_of(MEMBERS[0])
    room = replace(room_for([batch], LENGTH), **{small_part: 2})
    with pytest.raises(ValueError, match="room for"):
        even(batch, room)


def test_what_cannot_be_evened_out_is_known_before() -> None:
    batch, _ = batch_of(MEMBERS[0])
    assert can_even(batch)
    for odd in (
        replace(batch, answers=(LabelAnswers("a", torch.ones(2, 3)),)),
        replace(batch, states=(torch.ones(1),)),
    ):
        assert not can_even(odd)
        with pytest.raises(ValueError, match="evened out"):
            even(odd, room_for([odd], LENGTH))


def test_a_batch_on_the_host_is_carried_as_it_is() -> None:
    batch, _ = batch_of(MEMBERS[0])
    assert on_device(batch, CPU) is batch
    there = on_device(batch, torch.device("meta"))
    assert {tensor.device.type for tensor in tensors_of(there)} == {"meta"}
    shapes = [[tensor.shape for tensor in tensors_of(one)] for one in (batch, there)]
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) > 8
