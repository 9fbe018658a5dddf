"""Recorded work: done as it is once, recorded the second time, repeated in its own places from then on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
import torch
from torch import Tensor

from unmask.core.records import HOST_ONLY
from unmask.nets.batch.transfer import clone, copy_into, iter_tensors, shape_key
from unmask.train import gpu_async as cuda_graphs
from unmask.train.gpu_async import CudaGraphCache

CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Value:
    x_N: Tensor
    more: tuple[Tensor, ...] = ()
    name: str = "a"
    spare: int = field(default=0, metadata=HOST_ONLY)


def test_the_result_is_that_of_the_work_on_every_value() -> None:
    repeating = CudaGraphCache(lambda value: 2 * value.x_N + sum(one.sum() for one in value.more), CPU)
    for number in range(5):
        value = Value(torch.full((3,), float(number)), (torch.ones(2), torch.arange(number % 2 + 1.0)))
        assert torch.equal(repeating(value), 2 * value.x_N + sum(one.sum() for one in value.more))


def test_the_work_reads_the_value_itself_once_and_then_always_the_same_places() -> None:
    read: list[int] = []

    def work(value: Value) -> Tensor:
        read.append(value.x_N.data_ptr())
        return value.x_N.sum()

    values = [Value(torch.full((4,), float(number))) for number in range(4)]
    found = [float(repeating(value)) for repeating in [CudaGraphCache(work, CPU)] for value in values]
    assert found == [0.0, 4.0, 8.0, 12.0]
    assert read[0] == values[0].x_N.data_ptr()
    assert len(set(read[1:])) == 1
    assert read[1] not in {value.x_N.data_ptr() for value in values}


def test_what_no_kernel_reads_makes_no_other_kind() -> None:
    value = Value(torch.zeros(3), (torch.zeros(2),))
    assert shape_key(value) == shape_key(replace(value, spare=7, x_N=torch.ones(3)))
    for other in (replace(value, name="b"), replace(value, x_N=torch.zeros(4)), replace(value, more=())):
        assert shape_key(value) != shape_key(other)
    assert shape_key(value) != shape_key(replace(value, x_N=torch.zeros(3, dtype=torch.int64)))


def test_too_many_kinds_are_worked_on_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_graphs, "_MAX_GRAPHS", 2)
    repeating = CudaGraphCache(lambda value: value.x_N.sum(), CPU)
    for length in (1, 2, 3, 3, 4, 5, 1, 2, 2):
        assert float(repeating(Value(torch.ones(length)))) == length
    places = [len(recording.static_inputs.x_N) for recording in repeating.captured.values()]
    assert places == [3, 1], "those that came again first; what comes once takes no room"


def test_a_copy_has_places_of_its_own() -> None:
    value = Value(torch.zeros(3), (torch.zeros(2),))
    other = clone(value)
    copy_into(other, Value(torch.ones(3), (torch.ones(2),)))
    assert [float(tensor.sum()) for tensor in iter_tensors(value)] == [0.0, 0.0]
    assert [float(tensor.sum()) for tensor in iter_tensors(other)] == [3.0, 2.0]
