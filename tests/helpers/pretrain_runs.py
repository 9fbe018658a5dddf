"""What the tests of `pretrain` share: a quick way to start it, a small run, and what a run left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.train.rundir.checkpoint import MODEL, OPTIMIZER, checkpoint_name, list_checkpoints
from unmask.train.rundir.run_writer import RECORD, read_record

SMALL = (
    *(
        "--set",
        "network.depth=1",
        "--set",
        "network.width=32",
        "--set",
        "network.heads=2",
        "--set",
        "network.ffn_width=64",
    ),
    *(
        "--set",
        "stages.0.max_length=32",
        "--batch-size",
        "8",
        "--lr",
        "1e-3",
        "--device",
        "cpu",
        "--heldout-fraction",
        "0.02",
    ),
)
TWO_STAGES = ("--set", "stages.1.max_length=48", "--set", "stages.0.fraction=0.5", "--set", "stages.1.fraction=0.5")


def words(data: Path, out: Path, *more: object, member: str = "bert", steps: int = 12) -> list[str]:
    """The command line of a small run; what comes later wins."""
    budget = () if {"--tokens", "--hours", "--steps"} & set(more) else ("--steps", steps)
    stages = TWO_STAGES if member in ("bert", "wwm") else ()
    return list(map(str, ("pretrain", member, "--data", data, "--out", out, *SMALL, *stages, *budget, *more)))


@dataclass
class Child:
    """A command that runs in a child of the fork server."""

    server: Server
    number: int
    output: Path

    def poll(self) -> int | None:
        return self.server.ask({"poll": self.number})

    def wait(self) -> int:
        code = self.server.ask({"wait": self.number})
        assert code is not None
        return code

    def kill(self) -> None:
        os.kill(self.number, signal.SIGKILL)
        self.wait()

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Ended:
    """How a command ended, and all that it said."""

    code: int
    said: str


class Server:
    """The process that forks a child for every command; see `fork_server.py`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TERM": "dumb", "COLUMNS": "100"}
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).parent / "fork_server.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **quiet},
            text=True,
        )

    def ask(self, told: dict[str, Any]) -> int | None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        found: int | None = json.loads(self.process.stdout.readline())
        return found

    def start(self, *line: object, folder: Path | None = None, **environment: str) -> Child:
        """Begin a command."""
        self.count += 1
        said = self.folder / f"said-{self.count}.txt"
        told = {"words": list(map(str, line)), "said": str(said), "environment": environment}
        number = self.ask({**told, "folder": str(folder or self.folder)})
        assert number is not None
        return Child(self, number, said)

    def run(self, *line: object, folder: Path | None = None, **environment: str) -> Ended:
        """A command from beginning to end."""
        child = self.start(*line, folder=folder, **environment)
        return Ended(child.wait(), child.said())

    def close(self) -> None:
        self.process.communicate(timeout=20)


def prepared(server: Server, folder: Path, text: str, *more: object) -> Path:
    """A corpus of this text."""
    (folder / "text.txt").write_text(text, encoding="utf-8")
    ended = server.run("prepare", folder / "text.txt", "--vocab-size", 1200, "--out", folder / "data", "-j", 1, *more)
    assert ended.code == 0, ended.said
    return folder / "data"


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_step(out: Path, step: int, seconds: float = 60.0) -> None:
    """Wait until a run has saved a checkpoint of this step or of a later one."""
    end = time.monotonic() + seconds
    while not any(path.name >= checkpoint_name(step) for path in list_checkpoints(out / "checkpoints")):
        assert time.monotonic() < end, f"{out} did not come to step {step}"
        time.sleep(0.002)


def end_of(out: Path) -> dict[str, bytes]:
    """The last weights and the last memory of the optimizer, byte by byte."""
    last = list_checkpoints(out / "checkpoints")[-1]
    return {"step": last.name.encode(), **{name: (last / name).read_bytes() for name in (MODEL, OPTIMIZER)}}


def steps_of(out: Path) -> list[int]:
    """The steps in the record."""
    return [line["step"] for line in read_record(out / RECORD) if line["kind"] == "step"]


def litter(out: Path) -> list[str]:
    """Whatever is hidden in a run folder and is not the lock."""
    return [str(path.relative_to(out)) for path in out.rglob(".*") if path.name != ".lock"]


def wait_for_lines(out: Path, step: int) -> None:
    """Wait until a step is in the record."""
    end = time.monotonic() + 60
    while not ((out / "record.jsonl").exists() and step in steps_of(out)):
        assert time.monotonic() < end
        time.sleep(0.01)
