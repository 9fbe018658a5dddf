"""A `.npy` file that is written block by block, for arrays larger than memory.

What arrives: blocks of rows. What leaves: one float32 array on disk, whole or not there.
What never happens here: a second pass. numpy leaves room in a header for more rows, so it is written again at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from unmask.core.io.atomic import atomic_file
from unmask.core.records import Floats


def write_vectors(path: Path, blocks: Iterable[Floats], width: int) -> tuple[int, int]:
    """Write all blocks under one another. Returns the shape of what lies on disk."""
    rows = 0
    with atomic_file(path) as file:
        _write_header(file, (rows, width))
        begin = file.tell()
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype="<f4").data)
            rows += len(block)
        file.seek(0)
        _write_header(file, (rows, width))
        assert file.tell() == begin, "the header has outgrown its room"
    return rows, width


def _write_header(file: BinaryIO, shape: tuple[int, int]) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
