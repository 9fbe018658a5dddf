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
from law_nets import LENGTH, dry, small, text, trained_encoders, training, uneven

from unmask.config.network import TransformerConfig
from unmask.config.pooling import Pooling
from unmask.core.records import IGNORE_INDEX, Cloze, RowClass, RowMultiLabel
from unmask.nets.batch.batch import Batch
from unmask.nets.batch.bucketing import BucketShape, bucket_for, can_bucket, pad_to_bucket
from unmask.nets.batch.packed_sequences import MaskKind, PackedSequences
from unmask.nets.batch.transfer import batch_to_device, iter_tensors
from unmask.nets.encoder import TokenInputs, TransformerEncoder, init_weights
from unmask.nets.layers.attention import AttentionBackend
from unmask.objectives.all_tokens_mlm import AllTokensMLM
from unmask.objectives.generator import Generator
from unmask.objectives.heads.common import LossSum, RowClassHead
from unmask.objectives.mlm import MLM
from unmask.objectives.protocol import Objective
from unmask.objectives.rtd import RTD, JudgedTokens
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RankSplit
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.step import DeviceBatch

CPU = torch.device("cpu")
SAME, GRADIENT = 1e-6, 1e-5
"""float32, where a kernel groups its sums in another way; of the largest number of a gradient."""
MEMBERS = [dry(recipe) for recipe in trained_encoders()]
WRITTEN: list[tuple[Objective, ...]] = [
    (Generator(), RTD(judged_tokens=JudgedTokens.CHOSEN)),
    (Generator(), MLM()),
    (Generator(), AllTokensMLM()),
]
"""What no member learns as it is, but some can be made to."""


def batch_of(recipe: Recipe) -> tuple[Batch, Sequence[Objective]]:
    """Rows of unequal length, as a step sees them."""
    course = training(recipe, 1).source
    lesson = course.batch(uneven(course), RankSplit())
    return DeviceBatch.of(lesson, CPU).batches[0], lesson.objectives


def learner(recipe: Recipe, objectives: Sequence[Objective]) -> MultiHeadModel:
    made = MultiHeadModel(recipe.network, objectives, text().vocab.size, 2 * LENGTH)
    made.init_weights(0)
    return made


def learned(
    made: MultiHeadModel, batch: Batch, objectives: Sequence[Objective]
) -> tuple[tuple[LossSum, ...], dict[str, Tensor]]:
    """The terms, and the gradient of their sum."""
    made.zero_grad()
    terms = made(batch, objectives)
    torch.stack([term.total for term in terms]).sum().backward()
    return terms, {name: p.grad.clone() for name, p in made.named_parameters() if p.grad is not None}


def check_same(made: MultiHeadModel, batch: Batch, evened: Batch, objectives: Sequence[Objective]) -> None:
    (terms, gradients), (others, filled) = (learned(made, one, objectives) for one in (batch, evened))
    for term, other in zip(terms, others, strict=True):
        assert float(other.total.detach()) == pytest.approx(float(term.total.detach()), rel=SAME)
        assert (int(other.correct), other.count) == (int(term.correct), term.count)
    assert gradients.keys() == filled.keys()
    for name, gradient in gradients.items():
        assert (gradient - filled[name]).abs().max() <= GRADIENT * gradient.abs().max(), name


@pytest.mark.parametrize("lowering", [AttentionBackend.SDPA, AttentionBackend.REFERENCE, AttentionBackend.LOOP])
@pytest.mark.parametrize("recipe", MEMBERS, ids=lambda recipe: recipe.name)
def test_every_member_learns_the_same(recipe: Recipe, lowering: AttentionBackend) -> None:
    batch, objectives = batch_of(recipe)
    made = learner(recipe, objectives)
    for block in made.blocks():
        block.attention.sublayer.backend = lowering
    check_same(made, batch, pad_to_bucket(batch, bucket_for([batch], LENGTH)), objectives)


@pytest.mark.parametrize("objectives", WRITTEN, ids=lambda some: " and ".join(one.name for one in some))
def test_what_reads_the_writing_of_a_generator_learns_the_same(objectives: tuple[Objective, ...]) -> None:
    recipe = next(one for one in MEMBERS if any(isinstance(o, Generator) for o in one.objectives))
    batch, _ = batch_of(recipe)
    check_same(learner(recipe, objectives), batch, pad_to_bucket(batch, bucket_for([batch], LENGTH)), objectives)


@pytest.mark.parametrize("read", list(Pooling))
def test_a_fact_is_read_from_its_own_row_only(read: Pooling) -> None:
    trunk = small(MEMBERS[0]).network
    head = RowClassHead(trunk, "next", 2, pooling=read)
    batch, _ = batch_of(MEMBERS[0])
    net = network(replace(trunk, dropout=0.0, attention_dropout=0.0))
    found = [head(net(one.tokens), one) for one in (batch, pad_to_bucket(batch, bucket_for([batch], LENGTH)))]
    assert float(found[1].total.detach()) == pytest.approx(float(found[0].total.detach()), rel=SAME)
    assert [(int(one.correct), one.count) for one in found] == [(int(found[0].correct), len(batch.row_starts_B))] * 2


def network(trunk: TransformerConfig) -> TransformerEncoder:
    made = TransformerEncoder(trunk, text().vocab.size, 2 * LENGTH)
    init_weights(made, 0.1, torch.Generator().manual_seed(0))
    return made


@pytest.mark.parametrize(
    "lowering", [AttentionBackend.AUTO, AttentionBackend.SDPA, AttentionBackend.REFERENCE, AttentionBackend.LOOP]
)
@pytest.mark.parametrize("sight", [kind for kind in MaskKind if kind is not MaskKind.DENSE])
def test_nobody_sees_what_was_added(sight: MaskKind, lowering: AttentionBackend) -> None:
    """Other tokens in the added places change no state of the text; every sight keeps its own rule."""
    prefix, reach = [2, 0, 5] if sight is MaskKind.PREFIX_LM else [], 3 if sight is MaskKind.SLIDING_WINDOW else 0
    borders = PackedSequences.of([0, 5, 6, 18], "cpu", sight, prefix, reach)
    ids = torch.arange(18) % 7 + 5
    batch = Batch(TokenInputs(ids, torch.arange(18) % 6, torch.zeros_like(ids), borders), torch.tensor([0, 5, 6]), ())
    evened = pad_to_bucket(
        batch, BucketShape(num_tokens=40, num_sequences=8, max_seqlen=16, num_rows=4, num_predictions=1)
    )
    assert (evened.tokens.sequences.mask_kind, evened.tokens.sequences.window) == (sight, reach)
    net = network(small(MEMBERS[0]).network).eval()
    for block in net.blocks():
        block.attention.sublayer.backend = lowering
    others = replace(evened.tokens, ids_T=torch.where(evened.is_real_T, evened.tokens.ids_T, 9))
    states = [net(one).last_TD[:18] for one in (batch.tokens, evened.tokens, others)]
    assert torch.allclose(states[0], states[1], atol=1e-6)
    assert torch.equal(states[1], states[2])


def test_the_shape_is_that_of_the_room_whatever_comes() -> None:
    room = BucketShape(num_tokens=1024, num_sequences=64, max_seqlen=LENGTH, num_rows=20, num_predictions=128)
    shapes = set()
    for recipe in MEMBERS[:1]:
        course = training(recipe, 1).source
        for step in range(3):
            lesson = course.batch(replace(uneven(course), step=step), RankSplit())
            evened = DeviceBatch.of(lesson, CPU).batches[0]
            shapes.add(tuple(tuple(tensor.shape) for tensor in iter_tensors(pad_to_bucket(evened, room))))
    assert len(shapes) == 1


def test_what_was_added_is_marked_on_the_host_and_on_the_device() -> None:
    batch, _ = batch_of(MEMBERS[0])
    count, room = len(batch.tokens.ids_T), bucket_for([batch], LENGTH)
    evened = pad_to_bucket(batch, room)
    assert (len(evened.tokens.ids_T), int(evened.is_real_T.sum()), evened.num_padding) == (
        room.num_tokens,
        count,
        room.num_tokens - count,
    )
    for before, after in zip(batch.targets, evened.targets, strict=True):
        if isinstance(before, Cloze) and isinstance(after, Cloze):
            assert torch.equal(after.positions[: -after.num_padding], before.positions)
            assert not evened.is_real_T[after.positions[-after.num_padding :]].any()
            assert (after.answers[-after.num_padding :] == IGNORE_INDEX).all()
        if isinstance(before, RowClass) and isinstance(after, RowClass):
            assert len(after.value) - after.num_padding == len(before.value)
    assert evened.tokens.position_T.max() < LENGTH
    assert int(evened.tokens.sequences.cu_seqlens_S1.diff().max()) <= room.max_seqlen


def rows_of(*lengths: int) -> Batch:
    """Rows of so many tokens, of which nothing is asked."""
    ends = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    nothing = torch.zeros(ends[-1], dtype=torch.int64)
    return Batch(TokenInputs(nothing, nothing, nothing, PackedSequences.of(ends)), torch.tensor(ends[:-1]), ())


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
    room = bucket_for(made, 512)
    assert room.num_tokens == tokens
    for batch in made:
        assert len(pad_to_bucket(batch, room).tokens.ids_T) == tokens


@pytest.mark.parametrize("small_part", ["num_tokens", "num_sequences", "max_seqlen", "num_rows", "num_predictions"])
def test_a_room_that_is_too_small_is_refused(small_part: str) -> None:
    batch, _ = batch_of(MEMBERS[0])
    room = replace(bucket_for([batch], LENGTH), **{small_part: 2})
    with pytest.raises(ValueError, match="room for"):
        pad_to_bucket(batch, room)


def test_what_cannot_be_evened_out_is_known_before() -> None:
    batch, _ = batch_of(MEMBERS[0])
    assert can_bucket(batch)
    for odd in (
        replace(batch, targets=(RowMultiLabel("a", torch.ones(2, 3)),)),
        replace(batch, cached_states=(torch.ones(1),)),
    ):
        assert not can_bucket(odd)
        with pytest.raises(ValueError, match="cannot be padded"):
            pad_to_bucket(odd, bucket_for([odd], LENGTH))


def test_a_batch_on_the_host_is_carried_as_it_is() -> None:
    batch, _ = batch_of(MEMBERS[0])
    assert batch_to_device(batch, CPU) is batch
    there = batch_to_device(batch, torch.device("meta"))
    assert {tensor.device.type for tensor in iter_tensors(there)} == {"meta"}
    shapes = [[tensor.shape for tensor in iter_tensors(one)] for one in (batch, there)]
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) > 8
