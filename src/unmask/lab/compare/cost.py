"""Estimated cost of a comparison: the number of runs, and their time from a few measured steps."""

from __future__ import annotations

import gc
import gzip
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from unmask.api.pretrain import RunOptions
from unmask.core.reporter import SILENT, Reporter
from unmask.evaluation.suite_file import SuiteTask
from unmask.lab.compare.arms import Arm, ArmRun
from unmask.lab.compare.spec import ComparisonSpec
from unmask.train.cost_estimate import CostEstimate, estimate_cost
from unmask.train.run_config import DistContext

_EPOCHS = 3.0
"""The default number of fine-tuning epochs."""
_STARTUP = 5.0
"""The approximate start-up time of a process in seconds (importing torch)."""
_UNKNOWN = 1.0
"""Seconds assumed for a run that was not measured."""


@dataclass(frozen=True, slots=True)
class CostForecast:
    """Seconds per network by arm and mean seconds per fine-tuning run, both with start-up time."""

    network_seconds: Mapping[str, float]
    finetune_seconds: float

    def entry_seconds(self, spec: ComparisonSpec, entry: ArmRun) -> float:
        """Seconds of all fine-tuning runs of one network."""
        return self.finetune_seconds * num_finetunes(spec, entry)

    def total_seconds(self, spec: ComparisonSpec) -> float:
        """Seconds of all runs."""
        return sum(self.network_seconds[entry.arm.name] + self.entry_seconds(spec, entry) for entry in spec.entries)


def num_finetunes(spec: ComparisonSpec, entry: ArmRun) -> int:
    """The number of fine-tuning runs of one network."""
    return len(spec.tasks) * (spec.points + (entry.arm.name in spec.from_scratch))


def forecast_cost(spec: ComparisonSpec, arms: Collection[Arm], reporter: Reporter = SILENT) -> CostForecast:
    """Measure a few steps of every arm that is still to be pre-trained."""
    if arms:
        reporter.note("measuring a few steps of each member ...")
    found = {arm.name: _measure_seconds(spec, arm) for arm in spec.arms if arm in arms}
    networks = {arm.name: _STARTUP + found[arm.name].seconds if arm.name in found else _UNKNOWN for arm in spec.arms}
    speeds = [one.tokens_per_second for one in found.values()]
    manifest = spec.setup(spec.arms[0], 0).corpus.manifest.counts
    per_character = manifest.tokens / max(manifest.characters, 1)
    characters = [_characters(task) * _epochs(spec, task) for task in spec.tasks]
    finetune = sum(characters) / len(characters) * per_character * len(speeds) / sum(speeds) if speeds else _UNKNOWN
    return CostForecast(networks, _STARTUP + finetune)


def _measure_seconds(spec: ComparisonSpec, arm: Arm) -> CostEstimate:
    parts = spec.setup(arm, 0)
    how = _run_options(spec).for_this_machine(parts.recipe)
    found = estimate_cost(parts.training_spec, how, DistContext(0, 1, how.device), parts.cost_probes())
    del parts
    gc.collect()
    if how.device.type == "cuda":
        torch.cuda.empty_cache()  # the runs are other processes and need the memory
    return found


def _run_options(spec: ComparisonSpec) -> RunOptions:
    return RunOptions(
        out=Path(),
        device=spec.device,
        precision=spec.precision,
        cuda_graphs=spec.cuda_graphs,
        no_kernels=spec.no_kernels,
        num_evals=1,
        keep_checkpoints=1,
        dry_run=True,
    )


def _characters(task: SuiteTask) -> int:
    """The number of characters in the training file of a task."""
    packed = task.train.suffix == ".gz"
    with gzip.open(task.train, "rb") if packed else task.train.open("rb") as file:
        return sum(len(line.decode("utf-8", errors="replace")) for line in file)


def _epochs(spec: ComparisonSpec, task: SuiteTask) -> float:
    words = [*spec.finetune_args, *task.option_args()]
    given = [float(words[at + 1]) for at, word in enumerate(words) if word == "--epochs"]
    return given[-1] if given else _EPOCHS
