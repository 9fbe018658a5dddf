"""Terminal display of a training: the estimate, the progress and the summary, from the lines of its record."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from unmask.api.pretrain import PretrainListener
from unmask.api.pretrain_setup import PretrainSetup
from unmask.cli.ui.console import print_facts, print_line, print_path
from unmask.cli.ui.progress import duration, progress
from unmask.core.errors import UserError
from unmask.core.reporter import ProgressCallback
from unmask.data.corpus.corpus import Corpus
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import unigram_entropy
from unmask.train.cost_estimate import CostEstimate
from unmask.train.run_config import RunConfig
from unmask.train.rundir.folder import read_finished
from unmask.train.rundir.run_writer import RECORD, Listener, LogLine, read_record
from unmask.train.schedule import Budget, StepBudget, TimeBudget, TokenBudget

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

_GIGA = 1e9
_LAST = 50
"""Number of last steps in a mean loss."""


def print_estimate(found: CostEstimate, run: RunConfig, budget: Budget) -> None:
    """What the run will cost. Of steps, tokens and time one is the budget, and no guess."""
    steps, tokens = (
        _count(found.steps, isinstance(budget, StepBudget)),
        _count(found.tokens, isinstance(budget, TokenBudget)),
    )
    about = "" if isinstance(budget, TimeBudget) else "about "
    print_facts(
        (
            ("parameters", f"{found.num_parameters:,}"),
            ("device", f"{run.device}, {run.precision}{', compiled' if run.compile else ''}"),
            ("steps", steps),
            ("tokens", f"{tokens} ({found.tokens_per_second:,.0f} a second)"),
            ("time", f"{about}{duration(found.seconds)}"),
            ("memory", f"{found.memory_bytes / _GIGA:.1f} GB"),
            ("disk", f"up to {found.disk_bytes / _GIGA:.2g} GB of checkpoints"),
        )
    )


def print_start(recipe: Recipe, corpus: Corpus, budget: Budget) -> None:
    """Print the recipe, the budget and the unigram entropy of the corpus."""
    print_line(
        f"{recipe.name}: {recipe.network.depth} layers, width {recipe.network.width}, for {budget.text()} on "
        f"{corpus.manifest.counts.tokens:,} tokens. A guesser that knows only how often each token occurs loses "
        f"{unigram_entropy(corpus):.3f}."
    )


def print_summary(out: Path) -> None:
    """How the run ended."""
    finished = read_finished(out)
    facts = [
        ("steps", f"{finished['step']:,}"),
        ("tokens", f"{finished['tokens']:,}"),
        ("time", duration(finished["seconds"])),
    ]
    trials: list[LogLine] = []
    rows = _RowLengths()
    for line in read_record(out / RECORD):  # of a long run these are millions
        if line["kind"] == "eval":
            trials.append(line)
        elif line["kind"] == "step":
            rows.add(line)
    print_facts([*facts, *_scores(trials), *rows.last()])
    print_path("run", out)


class TerminalPretrainListener(PretrainListener):
    """Shows a pre-training in the terminal, and passes its numbers on to TensorBoard if requested."""

    def __init__(self, tensorboard: bool = False) -> None:
        self.tensorboard = tensorboard

    def note(self, sentence: str) -> None:
        """Print a message on standard error."""
        print_line(sentence, stderr=True)

    def estimated(self, estimate: CostEstimate, run: RunConfig, setup: PretrainSetup) -> None:
        """Print the estimated cost."""
        print_estimate(estimate, run, setup.budget)
        if setup.request.flops is not None:
            print_line(f"{setup.request.flops:g} FLOPs are {setup.budget.text()} of this recipe.")

    def started(self, setup: PretrainSetup) -> None:
        """Print the recipe, the budget and the loss of a unigram model."""
        print_start(setup.recipe, setup.corpus, setup.budget)

    @contextmanager
    def log_listeners(self, out: Path) -> Iterator[Sequence[Listener]]:
        """A progress bar, a line per evaluation, and TensorBoard."""
        with ExitStack() as stack:
            boards = [stack.enter_context(_writer(out))] if self.tensorboard else []
            tick = stack.enter_context(progress("training", 1.0))
            yield [_ProgressListener(tick), *map(_TensorBoardListener, boards)]


class _ProgressListener:
    """Shows the progress of the training."""

    def __init__(self, tick: ProgressCallback) -> None:
        self.tick = tick
        self.length = 0

    def __call__(self, line: LogLine) -> None:
        if line["kind"] == "step":
            if self.length and line["length"] != self.length:
                self.tick.note(f"step {line['step']:,}: from here on rows of {line['length']:,} tokens")
            self.length = line["length"]
            # The losses alone, so that a bar fits into 80 columns.
            losses = ", ".join(f"{name} {loss:.2f}" for name, loss in line["loss"].items())
            speed = f"{line['tokens_per_second'] / 1000:,.1f} k/s"
            self.tick(min(line["progress"], 1.0), f"step {line['step']:,} {losses}, {speed}")
        elif line["kind"] == "eval":
            rights = line["accuracy"]
            losses = ", ".join(f"{name} {loss:.3f} ({100 * rights[name]:.0f} %)" for name, loss in line["loss"].items())
            self.tick.note(f"step {line['step']:,}: held out {losses}")
        elif line["kind"] == "start" and line["step"]:
            self.tick.note(f"going on from step {line['step']:,}")


class _TensorBoardListener:
    """Passes numbers on to TensorBoard."""

    def __init__(self, writer: SummaryWriter) -> None:
        self.writer = writer

    def __call__(self, line: LogLine) -> None:
        for group in ("loss", "accuracy"):
            for name, value in line.get(group, {}).items():
                self._add(f"{group}/{name}/{line['kind']}", value, line["step"])
        for name in ("lr", "grad_norm", "tokens_per_second"):
            if name in line:
                self._add(f"run/{name}", line[name], line["step"])

    def _add(self, name: str, value: float, step: int) -> None:
        self.writer.add_scalar(name, value, step)


def _writer(out: Path) -> SummaryWriter:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError("--tensorboard needs the package tensorboard. Run: pip install tensorboard") from error
    return SummaryWriter(str(out / "tensorboard"))


def _scores(trials: Sequence[LogLine]) -> Iterator[tuple[str, str]]:
    """Held-out losses at the end, and at the beginning."""
    for name, loss in trials[-1]["loss"].items() if trials else ():
        began, right = trials[0]["loss"][name], 100 * trials[-1]["accuracy"][name]
        yield name, f"loss {loss:.3f} (began at {began:.3f}), {right:.1f} % right, held out"


@dataclass(slots=True)
class _RowLengths:
    """How long the rows of a run were, and what was lost on the last ones of each length."""

    lengths: Counter[int] = field(default_factory=Counter)
    losses: dict[int, deque[dict[str, float]]] = field(default_factory=dict)
    length: int = 0
    """That of the last step."""

    def add(self, step: LogLine) -> None:
        """One more step."""
        self.length = step["length"]
        self.lengths[self.length] += 1
        self.losses.setdefault(self.length, deque(maxlen=_LAST)).append(step["loss"])

    def last(self) -> Iterator[tuple[str, str]]:
        """How the rows of the last stage are learned, where they are not those that the run is judged by."""
        judged = self.lengths.most_common(1)[0][0] if self.lengths else self.length
        if self.length == judged:
            return
        last = self.losses[self.length]
        known = sorted({name for losses in last for name in losses})
        means = {name: fmean(losses[name] for losses in last if name in losses) for name in known}
        losses = ", ".join(f"{name} {loss:.3f}" for name, loss in means.items())
        yield "last rows", f"{losses} (trained on, {self.length} tokens; held out: {judged})"


def _count(value: float, exact: bool) -> str:
    """A number in words: all digits of a budget, three digits of a guess."""
    if exact:
        return f"{round(value):,}"
    scale = 10 ** max(math.floor(math.log10(max(value, 1.0))) - 2, 0)
    return f"about {round(value / scale) * scale:,}"
