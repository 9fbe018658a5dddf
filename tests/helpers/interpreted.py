"""Triton, or a skip where there is none but on Linux; on a CPU as an interpreter, which `tests/conftest.py` asks for.

With a GPU nothing is changed, and the same tests run the kernels themselves.
"""

import sys

import pytest
import torch

if sys.platform == "linux":
    import triton
else:
    triton = pytest.importorskip("triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    from triton.runtime import interpreter

    if not hasattr(interpreter, "plain_patch"):
        interpreter.plain_patch = interpreter._patch_lang_tensor

        def _patch(tensor, scope):
            """As it is, but numpy no longer turns an array of one number into a number by itself."""
            interpreter.plain_patch(tensor, scope)
            scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

        interpreter._patch_lang_tensor = _patch
