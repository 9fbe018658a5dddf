"""A batch in one piece of memory: the same tensors, carried, copied and filled at once."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from unmask.nets.carry import copied, fill, in_one_piece, pieces_of, tensors_of

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Part:
    x: Tensor
    more: tuple[Tensor, ...]
    name: str = "a"


@dataclass(frozen=True)
class Whole:
    part: Part
    last: Tensor = field(default_factory=lambda: torch.tensor([True, False, True]))


class Copies(TorchDispatchMode):
    """Counts copies."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.overloadpacket is torch.ops.aten.copy_
        return func(*args, **(kwargs or {}))


def whole(seed=0):
    draw = torch.Generator().manual_seed(seed)
    more = (
        torch.randn(5, 2, generator=draw),
        torch.empty(0, dtype=torch.int32),
        torch.randn(3, generator=draw).bfloat16(),
    )
    return Whole(Part(torch.randint(9, (7,), generator=draw), more))


def same(one, other):
    pairs = list(zip(tensors_of(one), tensors_of(other), strict=True))
    return len(pairs) == 5 and all(torch.equal(a, b) and a.dtype == b.dtype for a, b in pairs)


def test_it_is_the_same_batch_in_one_piece():
    found = in_one_piece(whole(), CPU)
    assert same(found, whole())
    assert found.part.name == "a"
    assert len(pieces_of(whole())) == 5
    assert len(pieces_of(found)) == 1
    assert all(tensor.data_ptr() % 16 == 0 for tensor in tensors_of(found))


def test_a_copy_of_one_piece_is_one_piece_of_its_own():
    first = in_one_piece(whole(), CPU)
    found = copied(first)
    assert same(found, first)
    (mine,), (other,) = pieces_of(found), pieces_of(first)
    assert mine.data_ptr() != other.data_ptr()


@pytest.mark.parametrize(("made", "copies"), [(lambda one: in_one_piece(one, CPU), 1), (lambda one: one, 5)])
def test_it_is_filled_at_once(made, copies):
    places, new = copied(made(whole(0))), made(whole(1))
    with Copies() as counted:
        fill(places, new)
    assert counted.count == copies
    assert same(places, whole(1))


def test_what_lies_otherwise_is_filled_tensor_by_tensor():
    places = copied(in_one_piece(whole(0), CPU))
    fill(places, whole(1))
    assert same(places, whole(1))
    tall = Part(torch.arange(6).reshape(2, 3).T, ())
    assert torch.equal(copied(tall).x, tall.x)
    fill(other := Part(torch.zeros(3, 2, dtype=torch.int64), ()), tall)
    assert torch.equal(other.x, tall.x)


def test_a_tensor_that_stands_in_two_places_may_differ_there_the_next_time():
    one = torch.zeros(3)
    places = copied((one, one))
    fill(places, (torch.ones(3), torch.full((3,), 2.0)))
    assert [place[0].item() for place in places] == [1, 2]


def test_what_shares_memory_in_other_ways_is_copied_all_the_same():
    numbers = np.arange(6.0)
    pair = (torch.from_numpy(numbers[:-1]), torch.from_numpy(numbers))
    assert all(torch.equal(one, two) for one, two in zip(copied(pair), pair, strict=True))
    half = torch.zeros(8)
    fill(half.split(4), (torch.ones(4), torch.full((4,), 2.0)))
    assert half.tolist() == [1, 1, 1, 1, 2, 2, 2, 2]
