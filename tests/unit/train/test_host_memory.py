"""Freed memory that is asked for again: kept at hand, it costs no page fault."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
from unmask.train.host_memory import keep_freed_memory

if {keep}:
    keep_freed_memory()

def lesson():
    arrays = [np.ones(1 << 19) for _ in range(6)]  # 4 MB each

lesson()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    lesson()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PAGES = 10 * 6 * (4 << 20) // 4096


def faults(keep: bool) -> int:
    made = subprocess.run([sys.executable, "-c", PROGRAM.format(keep=keep)], capture_output=True, text=True, check=True)
    return int(made.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a switch of glibc")
def test_lessons_take_the_memory_of_the_ones_before() -> None:
    assert faults(keep=True) < PAGES / 100
    assert faults(keep=False) > PAGES / 10, "the system keeps it by itself, and nothing is held here"
