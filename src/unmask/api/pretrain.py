"""The flow of `pretrain`: check, estimate, train, tell.

What arrives: what is to be learned, and where and how it is computed. What leaves: a finished folder and a summary.
What never happens here: a mistake that shows after the first step only. All is checked before the folder is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from unmask.api.pretrain_setup import PretrainRequest, PretrainSetup
from unmask.cli.ui.console import explain_interrupt, print_line
from unmask.cli.ui.training_display import print_estimate, print_start, print_summary, training_listeners
from unmask.core.io.atomic import write_text
from unmask.objectives.generator import all_networks
from unmask.tasks.recipe import Recipe
from unmask.train.cost_estimate import estimate_cost
from unmask.train.distributed import DistContext, init_distributed, world_size
from unmask.train.loop import train
from unmask.train.run_config import Precision, RunConfig, Switch, default_run_config, pick_microbatch
from unmask.train.rundir.checkpoint import CHECKPOINTS, list_checkpoints
from unmask.train.rundir.folder import (
    NEW_FOLDER_ADVICE,
    check_same_run,
    is_finished,
    lock_run,
    mark_finished,
    start_or_resume,
)
from unmask.train.rundir.metrics_log import Listener

_FEW = 1000
"""Fewer steps than this get a hint. Published runs have a hundred thousand and more."""
_NEW = f"{NEW_FOLDER_ADVICE} (and --from to begin with its weights)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Where and how it is computed."""

    out: Path
    device: str
    precision: Literal["auto", "float32", "bfloat16"]
    microbatch_tokens: int
    """Most tokens in a micro-batch; 0: what suits the device."""
    compile: bool
    cuda_graphs: Switch
    no_kernels: bool
    num_evals: int
    keep_checkpoints: int
    save_every_minutes: float
    tensorboard: bool
    dry_run: bool

    def for_this_machine(self, recipe: Recipe) -> RunConfig:
        """The same with nothing left open, for the machine that is there."""
        run = default_run_config(self.device, self.precision, self.cuda_graphs, self.no_kernels)
        run = replace(
            run, cuda_graphs=run.cuda_graphs and world_size() == 1
        )  # steps of several processes are not recorded
        return replace(
            run,
            microbatch_tokens=self.microbatch_tokens or microbatch_for(recipe, replace(run, compile=self.compile)),
            compile=self.compile,
            batch_worker_process=run.cuda_graphs
            and run.device.type == "cuda",  # such steps may be shorter than their lessons
            keep_checkpoints=self.keep_checkpoints,
            save_every_minutes=self.save_every_minutes,
            num_evals=self.num_evals,
        )


def run(request: PretrainRequest, options: RunOptions) -> None:
    """Pre-train, with an estimate before, progress all along and a summary at the end."""
    parts, out = PretrainSetup(request), options.out
    how = options.for_this_machine(parts.recipe)
    if request.init_from:
        print_line(f"reading the network in {request.init_from} ...", stderr=True)
    if not options.dry_run:
        check_same_run(out, parts.description(), _NEW)  # before the corpus is planned, which may take a while
    with init_distributed(how.device) as processes:
        parts.batch_source.check(processes.rank_split(how.microbatch_tokens))
        if processes.is_main and parts.heads_from_scratch:
            print_line(
                f"note: {request.init_from} has no weights for: {', '.join(parts.heads_from_scratch)}. These heads are drawn anew.",
                True,
            )
        if options.dry_run:
            _estimate(parts, how, processes)
            return
        with lock_run(out) if processes.is_main else nullcontext(), explain_interrupt(out):
            _run(parts, how, processes, options)


def microbatch_for(recipe: Recipe, run: RunConfig, num_sharing: int = 1) -> int:
    """How many tokens are computed at once by each of so many runs that share a device.

    Steps that are recorded have memory of their own, beside that of steps that come in a new shape.
    """
    held = sum(config.activation_bytes(run.uses_kernels) for config in all_networks(recipe.network, recipe.objectives))
    twice = (run.precision is Precision.FLOAT32, run.cuda_graphs)
    return pick_microbatch(run.device, held * 2 ** sum(twice) * num_sharing)


def _run(parts: PretrainSetup, how: RunConfig, processes: DistContext, logistics: RunOptions) -> None:
    """Begin or go on, unless there is nothing left to do. The first process speaks and saves for all."""
    out = logistics.out
    if processes.is_main:
        _begin(parts, out)
    processes.barrier()
    if not is_finished(out):
        _train(parts, how, processes, logistics)
    elif processes.is_main:
        print_line(f"{out} is finished already. To train further: --from {out} and a new --out.")
    if processes.is_main:
        print_summary(out)


def _begin(parts: PretrainSetup, out: Path) -> None:
    """Say in the folder what is begun there, and keep the tokenizer with it."""
    start_or_resume(out, parts.description(), _NEW)
    if not (out / "tokenizer.json").exists():
        write_text(out / "tokenizer.json", (parts.request.data / "tokenizer.json").read_text(encoding="utf-8"))


def _train(parts: PretrainSetup, how: RunConfig, processes: DistContext, logistics: RunOptions) -> None:
    out = logistics.out
    if not list_checkpoints(out / CHECKPOINTS):
        _estimate(parts, how, processes)
    with _listeners(parts, processes, logistics) as listeners:
        observers = [parts.sample_fills] if parts.predicts_tokens else []
        state = train(parts.training_spec, how, processes, out, listeners, observers)
    processes.barrier()
    if processes.is_main:
        mark_finished(out, state.describe())


@contextmanager
def _listeners(parts: PretrainSetup, processes: DistContext, logistics: RunOptions) -> Iterator[Sequence[Listener]]:
    """What makes a person see the training, for the first process; the others are silent."""
    if not processes.is_main:
        yield ()
        return
    print_start(parts.recipe, parts.corpus, parts.budget)
    with training_listeners(logistics.out, logistics.tensorboard) as listeners:
        yield listeners


def _estimate(parts: PretrainSetup, how: RunConfig, processes: DistContext) -> None:
    if processes.is_main:
        print_line("measuring a few steps ...", stderr=True)
    found = estimate_cost(parts.training_spec, how, processes, parts.cost_probes())
    if processes.is_main:
        print_estimate(found, how, parts.budget)
        if parts.request.flops is not None:
            print_line(f"{parts.request.flops:g} FLOPs are {parts.budget.text()} of this recipe.")
        if found.steps < _FEW and not parts.request.short:
            print_line(
                f"note: these are only about {found.steps:,.0f} steps, and published recipes are made for many "
                "thousands. A run of minutes learns more with --short: see docs/training.md.",
                stderr=True,
            )
