"""What a comparison will cost: runs, and time from a few measured steps.

What arrives: a contest. What leaves: a forecast in words and in seconds.
What never happens here: learning; the measured steps are thrown away.
"""

from __future__ import annotations

import gc
import gzip
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from unmask.cli.compare_parts import Contest
from unmask.cli.pretraining import Logistics
from unmask.cli.progress import duration
from unmask.cli.terminal import print_facts, say
from unmask.evaluate.suite_file import SuiteTask
from unmask.lab.arms import Arm, Entry
from unmask.train.estimate import Estimate, estimate
from unmask.train.processes import Processes

_EPOCHS = 3.0
"""How often `unmask tune` usually learns from every row."""
_START = 5.0
"""Seconds that a program needs before it begins, roughly: torch has to be loaded."""
_SOME = 1.0
"""What a run counts for whose time nobody has measured."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds of each network by its arm, and of a tune on average; with the start of the program that makes it."""

    networks: Mapping[str, float]
    tune: float

    def tunes(self, contest: Contest, entry: Entry) -> float:
        """Everything that is tuned from one network."""
        return self.tune * tunes_of(contest, entry)

    def total(self, contest: Contest) -> float:
        """All of it."""
        return sum(self.networks[entry.arm.name] + self.tunes(contest, entry) for entry in contest.entries)


def tunes_of(contest: Contest, entry: Entry) -> int:
    """How many tunes one network needs."""
    return len(contest.tasks) * (contest.points + (entry.arm.name in contest.from_scratch))


def forecast(contest: Contest, arms: Collection[Arm]) -> Forecast:
    """Measure a few steps of every arm that has to be pre-trained."""
    if arms:
        say("measuring a few steps of each member ...", beside=True)
    found = {arm.name: _measured(contest, arm) for arm in contest.arms if arm in arms}
    networks = {arm.name: _START + found[arm.name].seconds if arm.name in found else _SOME for arm in contest.arms}
    speeds = [one.tokens_per_second for one in found.values()]
    manifest = contest.parts(contest.arms[0], 0).corpus.manifest.counts
    per_character = manifest.tokens / max(manifest.characters, 1)
    characters = [_characters(task) * _epochs(contest, task) for task in contest.tasks]
    tune = sum(characters) / len(characters) * per_character * len(speeds) / sum(speeds) if speeds else _SOME
    return Forecast(networks, _START + tune)


def show_forecast(contest: Contest, costs: Forecast, missing: Sequence[Entry], tunes: int) -> None:
    """How many runs are still to be made, and how long they may take."""
    every = sum(tunes_of(contest, entry) for entry in contest.entries)
    measured = {entry.arm.name: costs.networks[entry.arm.name] for entry in missing}
    facts = [("networks", f"{len(missing)} of {len(contest.entries)} to pre-train")]
    facts += [("", f"{name}: about {duration(seconds)} each") for name, seconds in measured.items()]
    facts += [("tunes", f"{tunes} of {every} (tasks: {', '.join(task.name for task in contest.tasks)})")]
    if measured:
        seconds = sum(costs.networks[entry.arm.name] for entry in missing) + tunes * costs.tune
        facts += [("time", f"about {duration(seconds)}, one after another")]
    print_facts(facts)


def _measured(contest: Contest, arm: Arm) -> Estimate:
    parts = contest.parts(arm, 0)
    how = _logistics(contest).here(parts.recipe)
    found = estimate(parts.training, how, Processes(0, 1, how.device), parts.probes())
    del parts
    gc.collect()
    if how.device.type == "cuda":
        torch.cuda.empty_cache()  # the runs are other processes, and need the room
    return found


def _logistics(contest: Contest) -> Logistics:
    return Logistics(
        out=Path(),
        device=contest.device,
        precision=contest.precision,
        micro=0,
        compile=False,
        graphs=contest.graphs,
        plain=contest.plain,
        trials=1,
        keep=1,
        save_minutes=1.0,
        tensorboard=False,
        dry_run=True,
    )


def _characters(task: SuiteTask) -> int:
    """How much text a task is learned from, roughly: what its file holds."""
    packed = task.train.suffix == ".gz"
    with gzip.open(task.train, "rb") if packed else task.train.open("rb") as file:
        return sum(len(line.decode("utf-8", errors="replace")) for line in file)


def _epochs(contest: Contest, task: SuiteTask) -> float:
    words = [*contest.tuning, *task.words()]
    given = [float(words[at + 1]) for at, word in enumerate(words) if word == "--epochs"]
    return given[-1] if given else _EPOCHS
