"""Who is compared: members with their changes, and the runs that each needs.

What arrives: words of a command line. What leaves: arms, and for every arm and seed the networks and where they lie.
What never happens here: a run. Each is a command that another process works off.
"""

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
    """A member as it takes part."""

    member: str
    """As it was typed: a name, or your_file.py:name."""
    changes: tuple[str, ...] = ()
    """What is changed in its recipe: PATH=VALUE."""

    @property
    def name(self) -> str:
        """What tables and folders call it."""
        path, _, own = self.member.rpartition(":")
        name = own if path.endswith(".py") else self.member
        return re.sub(r"[^\w.-]+", "-", name)

    def args(self) -> list[str]:
        """Its part of the command line."""
        return [self.member, *(word for change in self.changes for word in ("--set", change))]


@dataclass(frozen=True, slots=True)
class ArmRun:
    """An arm with a seed: one network, and everything that is tuned from it."""

    arm: Arm
    seed: int

    @property
    def folder(self) -> Path:
        """Where all of it lies in the folder of the comparison."""
        return Path("members") / f"{self.arm.name}-{self.seed}"

    def point_folder(self, number: int) -> Path:
        """Where the network lies as it was at one of several points of its training."""
        return self.folder / "points" / str(number)

    def pretrain_args(self, out: Path, shared: Sequence[str]) -> list[str]:
        """The command that makes the network."""
        where = ["--out", str(out / self.folder / NETWORK), "--seed", str(self.seed)]
        return ["pretrain", *self.arm.args(), *where, *shared]

    def suite_runs(self, tasks: Sequence[SuiteTask], scratch: bool) -> tuple[SuiteRun, ...]:
        """What is tuned from it; with `scratch` also from newly drawn weights of its shape."""
        starts = (StartFrom.PRETRAINED, StartFrom.SCRATCH) if scratch else (StartFrom.PRETRAINED,)
        return tuple(SuiteRun(task, start, self.seed) for task in tasks for start in starts)


def parse_arms(members: Sequence[str], changes: Sequence[str]) -> tuple[Arm, ...]:
    """The arms: a change that begins with a member and a colon is for it alone, any other for all."""
    own: dict[str, list[str]] = {member: [] for member in members}
    for change in changes:
        path = change.partition("=")[0]
        meant = sorted((one for one in members if change.startswith(f"{one}:")), key=len, reverse=True)
        if not meant and ":" in path:
            raise InputError(
                f"--set {change}: {path.rpartition(':')[0]!r} is not compared here. Compared are: {', '.join(members)}."
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
    """Every network; seeds outermost, so that a first whole table is there early."""
    return tuple(ArmRun(arm, seed) for seed in range(seeds) for arm in arms)
