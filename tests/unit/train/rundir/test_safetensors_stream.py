"""Safetensors files written by hand: what safetensors itself reads, and would have written."""

import pytest
import torch
from safetensors.torch import load, save

from unmask.train.rundir.safetensors_stream import blocks_of


def written(tensors):
    return b"".join(bytes(block) for block in blocks_of(tensors))


KINDS = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_number_is_read_back(kind):
    tensors = {"b": torch.arange(6).reshape(2, 3).to(kind), "a": torch.ones(3).to(kind)}
    found = load(written(tensors))
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) and found[name].dtype == kind for name in tensors)


def test_with_one_type_of_a_width_the_bytes_are_those_of_safetensors():
    tensors = {
        "weights/é": torch.randn(3, 5),
        "half": torch.randn(7).bfloat16(),
        "step": torch.tensor(3.0),
        "none": torch.empty(0, 4),
        "count": torch.arange(2),
        "mask": torch.tensor([True, False, True]),
    }
    assert written(tensors) == save(tensors)


def test_nothing_at_all():
    assert load(written({})) == {}


def test_what_is_not_in_one_piece():
    tall = torch.randn(4, 3).T
    assert torch.equal(load(written({"tall": tall}))["tall"], tall)
