"""The arms of a comparison: members with their changes, and the runs of each arm and seed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unmask.core.errors import InputError
from unmask.evaluation.suite import SuiteRun
from unmask.evaluation.suite_file import SuiteTask
from unmask.finetuning.init_weights import StartFrom

NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Arm:
    """A member with its changes."""

    member: str
    """A name, or your_file.py:name."""
    changes: tuple[str, ...] = ()
    """Changes of its recipe: PATH=VALUE."""

    @property
    def name(self) -> str:
        """The name in tables and folders."""
        path, _, own = self.member.rpartition(":")
        name = own if path.endswith(".py") else self.member
        return re.sub(r"[^\w.-]+", "-", name)

    def args(self) -> list[str]:
        """Its command-line arguments."""
        return [self.member, *(word for change in self.changes for word in ("--set", change))]


@dataclass(frozen=True, slots=True)
class ArmRun:
    """An arm with a seed: one network and the models fine-tuned from it."""

    arm: Arm
    seed: int

    @property
    def folder(self) -> Path:
        """Its folder inside the folder of the comparison."""
        return Path("members") / f"{self.arm.name}-{self.seed}"

    def point_folder(self, number: int) -> Path:
        """The folder of the network at an intermediate point of its training."""
        return self.folder / "points" / str(number)

    def pretrain_args(self, out: Path, shared: Sequence[str]) -> list[str]:
        """The command that pre-trains the network."""
        where = ["--out", str(out / self.folder / NETWORK), "--seed", str(self.seed)]
        return ["pretrain", *self.arm.args(), *where, *shared]

    def suite_runs(self, tasks: Sequence[SuiteTask], scratch: bool) -> tuple[SuiteRun, ...]:
        """Its fine-tuning runs; with `scratch`, also those from random weights."""
        starts = (StartFrom.PRETRAINED, StartFrom.SCRATCH) if scratch else (StartFrom.PRETRAINED,)
        return tuple(SuiteRun(task, start, self.seed) for task in tasks for start in starts)


def parse_arms(members: Sequence[str], changes: Sequence[str]) -> tuple[Arm, ...]:
    """The arms. A change with the prefix `MEMBER:` applies to that member alone, any other to all."""
    own: dict[str, list[str]] = {member: [] for member in members}
    for change in changes:
        path = change.partition("=")[0]
        meant = sorted((one for one in members if change.startswith(f"{one}:")), key=len, reverse=True)
        if not meant and ":" in path:
            raise InputError(
                f"--set {change}: {path.rpartition(':')[0]!r} is not compared here. Take one of: {', '.join(members)}."
            )
        for member in meant[:1] or members:
            own[member].append(change.removeprefix(f"{member}:") if meant else change)
    found = tuple(Arm(member, tuple(own[member])) for member in members)
    twice = [name for name, count in Counter(arm.name for arm in found).items() if count > 1]
    if twice:
        raise InputError(
            f"{twice[0]} was named twice. To compare two versions of a member, write one as a recipe file."
        )
    return found


def arm_runs(arms: Sequence[Arm], seeds: int) -> tuple[ArmRun, ...]:
    """Every network. Seeds are the outer loop, so that a complete table exists early."""
    return tuple(ArmRun(arm, seed) for seed in range(seeds) for arm in arms)
