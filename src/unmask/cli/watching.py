"""What a person sees of a training: what it will cost, how it goes on, and how it ended.

What arrives: an estimate, the lines of a record. What leaves: words, a bar and tables.
What never happens here: slowing the training down, or a number that is not in the record.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from unmask.cli.progress import Tick, duration, progress
from unmask.cli.terminal import console
from unmask.errors import UserError
from unmask.shards.corpus import Corpus
from unmask.shards.files import read_json
from unmask.tasks import Recipe
from unmask.train.budget import Budget, Hours, Steps, Tokens
from unmask.train.estimate import Estimate
from unmask.train.folder import FINISHED
from unmask.train.lessons import unigram_entropy
from unmask.train.loop import Line, Listener
from unmask.train.record import NAME, read_record
from unmask.train.run import Run

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

_GIGA = 1e9


def show_estimate(found: Estimate, run: Run, budget: Budget) -> None:
    """What the run will cost."""
    about = "" if isinstance(budget, Steps) else "about "
    spent = "" if isinstance(budget, Hours) else "about "
    counted = "" if isinstance(budget, Tokens) else "about "
    _table(
        ("parameters", f"{found.parameters:,}"),
        ("device", f"{run.device}, {run.precision}{', compiled' if run.compile else ''}"),
        ("steps", f"{about}{_round(found.steps, about):,}"),
        ("tokens", f"{counted}{_round(found.tokens, counted):,} ({found.tokens_per_second:,.0f} a second)"),
        ("time", f"{spent}{duration(found.seconds)}"),
        ("memory", f"{found.memory / _GIGA:.1f} GB"),
        ("disk", f"up to {found.disk / _GIGA:.2g} GB of checkpoints"),
    )


def show_start(recipe: Recipe, corpus: Corpus, budget: str) -> None:
    """What is begun."""
    counts = corpus.manifest.counts
    console().print(
        f"{recipe.name}: {recipe.trunk.depth} layers, width {recipe.trunk.width}, for {budget} on {counts.tokens:,} "
        f"tokens. A guesser that knows only how often each token occurs loses {unigram_entropy(corpus):.3f}.",
        markup=False,
        soft_wrap=True,
    )


@contextmanager
def watching(out: Path, budget: Budget, tensorboard: bool) -> Iterator[Sequence[Listener]]:
    """Listeners for the lines of a record: a bar with the time left, a line for each trial, TensorBoard if wished."""
    boards = [_Board(_writer(out))] if tensorboard else []
    with progress("training", 1.0) as tick:
        yield [_Bar(tick), *boards]
    for board in boards:
        board.writer.close()


class _Bar:
    """Says how far the training is."""

    def __init__(self, tick: Tick) -> None:
        self.tick = tick

    def __call__(self, line: Line) -> None:
        if line["kind"] == "step":
            share, speed = line["share"], line["tokens_per_second"]
            assert isinstance(share, float)
            assert isinstance(speed, float)
            self.tick(min(share, 1.0), f"step {line['step']:,} {_short(line)}, {speed / 1000:,.1f} k/s")
        elif line["kind"] == "trial":
            console(stderr=True).print(f"step {line['step']:,}: held out {_losses(line)}", markup=False, soft_wrap=True)


class _Board:
    """Passes numbers on to TensorBoard."""

    def __init__(self, writer: SummaryWriter) -> None:
        self.writer = writer

    def __call__(self, line: Line) -> None:
        step = line["step"]
        assert isinstance(step, int)
        for group in ("loss", "right"):
            numbers = line.get(group)
            for name, value in numbers.items() if isinstance(numbers, Mapping) else ():
                self._add(f"{group}/{name}/{line['kind']}", value, step)
        for name in ("rate", "norm", "tokens_per_second"):
            if name in line:
                self._add(f"run/{name}", line[name], step)

    def _add(self, name: str, value: object, step: int) -> None:
        self.writer.add_scalar(name, value, step)


def _writer(out: Path) -> SummaryWriter:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError("--tensorboard needs the package tensorboard. Run: pip install tensorboard") from error
    return SummaryWriter(str(out / "tensorboard"))


def show_summary(out: Path, already: bool) -> None:
    """How the run ended."""
    finished = read_json(out / FINISHED)
    trials = [line for line in read_record(out / NAME) if line["kind"] == "trial"]
    if already:
        console().print(
            f"{out} is finished already. To train further: --from {out} and a new --out.", markup=False, soft_wrap=True
        )
    rows = [
        ("steps", f"{finished['step']:,}"),
        ("tokens", f"{finished['tokens']:,}"),
        ("time", duration(finished["seconds"])),
        *_scores(trials),
    ]
    _table(*rows)
    console().print(Text.assemble(("run         ", "bold"), str(out)), soft_wrap=True)


def _scores(trials: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Held-out losses at the end, and at the beginning."""
    if not trials:
        return
    first, last = trials[0], trials[-1]
    for name, loss in last["loss"].items():
        right = 100 * last["right"][name]
        yield name, f"loss {loss:.3f} (began at {first['loss'][name]:.3f}), {right:.1f} % right, held out"


def _short(line: Line) -> str:
    """The losses alone, so that a bar fits into 80 columns."""
    losses = line["loss"]
    assert isinstance(losses, Mapping)
    return ", ".join(f"{name} {value:.2f}" for name, value in losses.items())


def _losses(line: Line) -> str:
    losses, rights = line["loss"], line["right"]
    assert isinstance(losses, Mapping)
    assert isinstance(rights, Mapping)
    return ", ".join(f"{name} {value:.3f} ({100 * rights[name]:.0f} %)" for name, value in losses.items())


def _table(*rows: tuple[str, str]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", min_width=11)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    console().print(table)


def _round(value: float, about: str) -> int:
    """Three digits of a guess; all digits of a budget."""
    if not about or value < 1000:
        return round(value)
    scale: int = 10 ** (math.floor(math.log10(value)) - 2)
    return round(value / scale) * scale
