"""How long a run takes until its first step is in the record: with nothing compiled yet, and when started again.

    python -m bench.speed.first_step --data FOLDER [--size base] [--words "--compile"]

What arrives: a prepared corpus. What leaves: seconds from the start of the program until a step is recorded, twice.
On a GPU that is when two more have been queued, one of which was recorded (CUDA graphs): all that has to be made once.
What never happens here: a cache of the user. Compilers keep what they make in a folder that is empty at first.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from unmask.train.rundir.run_writer import read_record

CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
PATIENCE = 900
"""Seconds after which a run is given up."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="a prepared corpus")
    parser.add_argument("--member", default="bert")
    parser.add_argument("--size", default="base")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--words", default="", help="more for `unmask pretrain`")
    wish = parser.parse_args()
    with TemporaryDirectory() as folder:
        caches = {name: str(Path(folder) / name.lower()) for name in CACHES}
        for start in ("first start", "second start"):
            run = Path(folder) / start.partition(" ")[0]
            print(
                f"{wish.member} {wish.size}, {start}: {_seconds(wish, run, caches):.1f} s until a step is in the record"
            )


def _seconds(wish: argparse.Namespace, run: Path, caches: dict[str, str]) -> float:
    said = [
        "pretrain",
        wish.member,
        "--size",
        wish.size,
        "--batch-size",
        str(wish.batch),
        "--steps",
        "3",
        "--num-evals",
        "1",
    ]
    command = [sys.executable, "-m", "unmask", *said, "--data", str(wish.data), "--out", str(run)]
    began = time.perf_counter()
    with subprocess.Popen([*command, *shlex.split(wish.words)], env={**os.environ, **caches}) as process:
        while not _stepped(run / "record.jsonl"):
            if process.poll() is not None or time.perf_counter() - began > PATIENCE:
                process.kill()
                raise SystemExit(f"no step was taken: {shlex.join(command)}")
            time.sleep(0.05)
        took = time.perf_counter() - began
    return took


def _stepped(record: Path) -> bool:
    """Whether a step is in the record."""
    return record.exists() and any(line["kind"] == "step" for line in read_record(record))


if __name__ == "__main__":
    main()
