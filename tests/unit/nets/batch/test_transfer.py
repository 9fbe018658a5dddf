"""A batch in one piece of memory: the same tensors, carried, copied and filled at once."""

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from unmask.nets.batch.transfer import clone, copy_into, iter_tensors, storages, to_device_packed

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
    pairs = list(zip(iter_tensors(one), iter_tensors(other), strict=True))
    return len(pairs) == 5 and all(torch.equal(a, b) and a.dtype == b.dtype for a, b in pairs)


def test_it_is_the_same_batch_in_one_piece():
    found = to_device_packed(whole(), CPU)
    assert same(found, whole())
    assert found.part.name == "a"
    assert len(storages(whole())) == 5
    assert len(storages(found)) == 1
    assert all(tensor.data_ptr() % 16 == 0 for tensor in iter_tensors(found))


def test_a_copy_of_one_piece_is_one_piece_of_its_own():
    first = to_device_packed(whole(), CPU)
    found = clone(first)
    assert same(found, first)
    (mine,), (other,) = storages(found), storages(first)
    assert mine.data_ptr() != other.data_ptr()


@pytest.mark.parametrize(("made", "copies"), [(lambda one: to_device_packed(one, CPU), 1), (lambda one: one, 5)])
def test_it_is_filled_at_once(made, copies):
    places, new = clone(made(whole(0))), made(whole(1))
    with Copies() as counted:
        copy_into(places, new)
    assert counted.count == copies
    assert same(places, whole(1))


def test_what_lies_otherwise_is_filled_tensor_by_tensor():
    places = clone(to_device_packed(whole(0), CPU))
    copy_into(places, whole(1))
    assert same(places, whole(1))
    tall = Part(torch.arange(6).reshape(2, 3).T, ())
    assert torch.equal(clone(tall).x, tall.x)
    copy_into(other := Part(torch.zeros(3, 2, dtype=torch.int64), ()), tall)
    assert torch.equal(other.x, tall.x)


def test_a_tensor_that_stands_in_two_places_may_differ_there_the_next_time():
    one = torch.zeros(3)
    places = clone((one, one))
    copy_into(places, (torch.ones(3), torch.full((3,), 2.0)))
    assert [place[0].item() for place in places] == [1, 2]


def test_what_shares_memory_in_other_ways_is_copied_all_the_same():
    numbers = np.arange(6.0)
    pair = (torch.from_numpy(numbers[:-1]), torch.from_numpy(numbers))
    assert all(torch.equal(one, two) for one, two in zip(clone(pair), pair, strict=True))
    half = torch.zeros(8)
    copy_into(half.split(4), (torch.ones(4), torch.full((4,), 2.0)))
    assert half.tolist() == [1, 1, 1, 1, 2, 2, 2, 2]
