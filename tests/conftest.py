"""Property tests draw the same cases every time; set HYPOTHESIS_PROFILE=explore to look for new ones.

Without a GPU kernels are interpreted, where Triton is installed; it looks at its switch when it is first imported.
"""

import contextlib
import os
import signal
import subprocess

import pytest
import torch
from hypothesis import settings

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

settings.register_profile("steady", derandomize=True, print_blob=True)
settings.register_profile("explore", derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# A suite that was started in the background ignores Ctrl-C, and so would every command that its tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


SLOW = (
    "laws/test_law_kernels",
    "laws/test_law_learning",
    "laws/test_law_resume",
    "laws/test_law_split",
    "parity/test_parity_real",
    "prepare/test_prepare_killed",
    "pretrain/",
    "distributed/",
    "unit/nets/kernels/",
)
"""Files whose tests train whole networks, start processes or interpret kernels; `make test-fast` leaves them out."""


def pytest_collection_modifyitems(items):
    for item in items:
        if any(f"/tests/{name}" in str(item.path) for name in SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def mount_disk(tmp_path):
    """Mount a disk of some megabytes; a test that needs one is skipped where that is not permitted."""
    mounted = []

    def mount(megabytes):
        disk = tmp_path / "disk"
        disk.mkdir()
        with contextlib.suppress(FileNotFoundError):
            command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(disk)]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                mounted.append(disk)
                return disk
        pytest.skip("this needs a small disk, and mounting one is not permitted here")

    yield mount
    for disk in mounted:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
