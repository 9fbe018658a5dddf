"""A safetensors file as a stream of blocks, without a copy of tensors that are contiguous on the host.

Other threads run meanwhile, unlike with `safetensors`, which builds the file in memory under the GIL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import accumulate

import torch
from torch import Tensor

_TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_ALIGNED = 8
"""The header is filled up with spaces so that numbers begin at a multiple of so many bytes."""


def blocks_of(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    """A whole file. Wide numbers come first, so that each lies at a multiple of its size."""
    held = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    ends = [0, *accumulate(tensor.nbytes for _, tensor in held)]
    about = {
        name: {"dtype": _TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        for (name, tensor), start, end in zip(held, ends, ends[1:], strict=False)
    }
    header = json.dumps(about, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-len(header) % _ALIGNED)
    yield len(header).to_bytes(8, "little") + header
    for _, tensor in held:
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        yield flat.view(torch.uint8).numpy().data
