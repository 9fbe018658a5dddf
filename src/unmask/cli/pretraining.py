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

from unmask.cli.pretrain_parts import Pretraining, Wish
from unmask.cli.terminal import interruptible, say
from unmask.cli.watching import show_estimate, show_start, show_summary, watching
from unmask.nets.held import held_bytes
from unmask.objectives.guess import networks_of
from unmask.shards.files import write_text
from unmask.tasks import Recipe
from unmask.train.checkpoint import CHECKPOINTS, checkpoints
from unmask.train.estimate import estimate
from unmask.train.folder import NEW, begin, check, finish, finished, hold
from unmask.train.loop import train
from unmask.train.processes import Processes, joined, world_size
from unmask.train.record import Listener
from unmask.train.run import Precision, Run, Switch, choose_micro, run_here

_FEW = 1000
"""Fewer steps than this get a hint. Published runs have a hundred thousand and more."""
_NEW = f"{NEW} (and --from to begin with its weights)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistics:
    """Where and how it is computed."""

    out: Path
    device: str
    precision: Literal["auto", "float32", "bfloat16"]
    micro: int
    """Most tokens in a micro-batch; 0: what suits the device."""
    compile: bool
    graphs: Switch
    plain: bool
    trials: int
    keep: int
    save_minutes: float
    tensorboard: bool
    dry_run: bool

    def here(self, recipe: Recipe) -> Run:
        """The same with nothing left open, for the machine that is there."""
        run = run_here(self.device, self.precision, self.graphs, self.plain)
        run = replace(run, graphs=run.graphs and world_size() == 1)  # steps of several processes are not recorded
        return replace(
            run,
            micro=self.micro or suited_micro(recipe, replace(run, compile=self.compile)),
            compile=self.compile,
            loader_process=run.graphs and run.device.type == "cuda",  # such steps may be shorter than their lessons
            keep=self.keep,
            save_minutes=self.save_minutes,
            trials=self.trials,
        )


def run(wish: Wish, logistics: Logistics) -> None:
    """Pre-train, with an estimate before, progress all along and a summary at the end."""
    parts, out = Pretraining(wish), logistics.out
    how = logistics.here(parts.recipe)
    if wish.start:
        say(f"reading the network in {wish.start} ...", beside=True)
    if not logistics.dry_run:
        check(out, parts.description(), _NEW)  # before the corpus is planned, which may take a while
    with joined(how.device) as processes:
        parts.course.check(processes.crew(how.micro))
        if processes.leads and parts.drawn:
            say(f"note: {wish.start} has no weights for: {', '.join(parts.drawn)}. These heads are drawn anew.", True)
        if logistics.dry_run:
            _estimate(parts, how, processes)
            return
        with hold(out) if processes.leads else nullcontext(), interruptible(out):
            _run(parts, how, processes, logistics)


def suited_micro(recipe: Recipe, run: Run, sharing: int = 1) -> int:
    """How many tokens are computed at once by each of so many runs that share a device.

    Steps that are recorded have memory of their own, beside that of steps that come in a new shape.
    """
    held = sum(held_bytes(trunk, run.kernels) for trunk in networks_of(recipe.trunk, recipe.objectives))
    twice = (run.precision is Precision.FLOAT32, run.graphs)
    return choose_micro(run.device, held * 2 ** sum(twice) * sharing)


def _run(parts: Pretraining, how: Run, processes: Processes, logistics: Logistics) -> None:
    """Begin or go on, unless there is nothing left to do. The first process speaks and saves for all."""
    out = logistics.out
    if processes.leads:
        _begin(parts, out)
    processes.wait()
    if not finished(out):
        _train(parts, how, processes, logistics)
    elif processes.leads:
        say(f"{out} is finished already. To train further: --from {out} and a new --out.")
    if processes.leads:
        show_summary(out)


def _begin(parts: Pretraining, out: Path) -> None:
    """Say in the folder what is begun there, and keep the tokenizer with it."""
    begin(out, parts.description(), _NEW)
    if not (out / "tokenizer.json").exists():
        write_text(out / "tokenizer.json", (parts.wish.data / "tokenizer.json").read_text(encoding="utf-8"))


def _train(parts: Pretraining, how: Run, processes: Processes, logistics: Logistics) -> None:
    out = logistics.out
    if not checkpoints(out / CHECKPOINTS):
        _estimate(parts, how, processes)
    with _shown(parts, processes, logistics) as listeners:
        observers = [parts.samples] if parts.fills else []
        state = train(parts.training, how, processes, out, listeners, observers)
    processes.wait()
    if processes.leads:
        finish(out, state.describe())


@contextmanager
def _shown(parts: Pretraining, processes: Processes, logistics: Logistics) -> Iterator[Sequence[Listener]]:
    """What makes a person see the training, for the first process; the others are silent."""
    if not processes.leads:
        yield ()
        return
    show_start(parts.recipe, parts.corpus, parts.budget)
    with watching(logistics.out, logistics.tensorboard) as listeners:
        yield listeners


def _estimate(parts: Pretraining, how: Run, processes: Processes) -> None:
    if processes.leads:
        say("measuring a few steps ...", beside=True)
    found = estimate(parts.training, how, processes, parts.probes())
    if processes.leads:
        show_estimate(found, how, parts.budget)
        if parts.wish.flops is not None:
            say(f"{parts.wish.flops:g} FLOPs are {parts.budget.told()} of this recipe.")
        if found.steps < _FEW and not parts.wish.short:
            say(
                f"note: these are only about {found.steps:,.0f} steps, and published recipes are made for many "
                "thousands. A run of minutes learns more with --short: see docs/training.md.",
                beside=True,
            )
