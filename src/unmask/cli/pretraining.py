"""What a user wished for when pre-training, turned into parts, and run.

What arrives: the plain values of the command line. What leaves: a training, and what a person sees of it.
What never happens here: a mistake that shows after the first step only. All is checked before the folder is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from unmask import __version__
from unmask.cli.terminal import console, resolve
from unmask.cli.watching import show_estimate, show_start, show_summary, watching
from unmask.codec import encode, fingerprint
from unmask.errors import RecipeError
from unmask.export.source import open_source
from unmask.export.start import begin_from, fill_learner
from unmask.nets.model import Model
from unmask.nets.transformer import count
from unmask.shards.corpus import Corpus
from unmask.shards.files import digest_of, write_text
from unmask.tasks import Recipe
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.budget import Budget, Hours, Steps, Tokens
from unmask.train.checkpoint import State
from unmask.train.course import Lesson, Moment
from unmask.train.estimate import Probe, estimate
from unmask.train.folder import begin, begun, finish, finished, hold
from unmask.train.learner import Learner
from unmask.train.lessons import Lessons, learnable
from unmask.train.loop import Line, Listener, Training, train
from unmask.train.processes import Processes, joined
from unmask.train.run import Run, choose_device, choose_micro, choose_precision
from unmask.train.samples import fill_samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be learned. What is empty or 0 was not wished for."""

    member: str
    size: str
    changes: tuple[str, ...]
    batch: int
    rate: float
    data: Path
    start: Path | None
    seed: int
    held_out: float
    steps: int | None
    tokens: int | None
    hours: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistics:
    """Where and how it is computed."""

    out: Path
    device: str
    precision: Literal["auto", "float32", "bfloat16"]
    micro: int
    compile: bool
    trials: int
    keep: int
    save_minutes: float
    tensorboard: bool
    dry_run: bool


def run(wish: Wish, logistics: Logistics) -> None:
    """Pre-train, with an estimate before, progress all along and a summary at the end."""
    job = Job(wish)
    job.check()
    device = choose_device(logistics.device)
    how = Run(
        device=device,
        precision=choose_precision(device, logistics.precision),
        micro=logistics.micro or choose_micro(device),
        compile=logistics.compile,
        keep=logistics.keep,
        save_minutes=logistics.save_minutes,
        trials=logistics.trials,
    )
    with joined(device) as processes:
        if logistics.dry_run:
            _estimate(job, how, processes)
            return
        with hold(logistics.out) if processes.leads else nullcontext():
            _run(job, how, processes, logistics)


def _run(job: Job, how: Run, processes: Processes, logistics: Logistics) -> None:
    out = logistics.out
    if processes.leads:
        _begin(job, out)
    processes.wait()
    if finished(out):
        if processes.leads:
            show_summary(out, already=True)
        return
    if not any((out / "checkpoints").glob("step-*")):
        _estimate(job, how, processes)
    with _shown(job, processes, logistics) as listeners:
        observers = [job.samples] if job.clozes else []
        state = train(job.training, how, processes, out, listeners, observers)
    processes.wait()
    if processes.leads:
        finish(out, _summary(state))
        show_summary(out, already=False)


def _begin(job: Job, out: Path) -> None:
    """Say what is begun; everything about it was checked before."""
    fresh = not begun(out)
    begin(out, job.description())
    if fresh or not (out / "tokenizer.json").exists():
        write_text(out / "tokenizer.json", (job.wish.data / "tokenizer.json").read_text(encoding="utf-8"))


@contextmanager
def _shown(job: Job, processes: Processes, logistics: Logistics) -> Iterator[Sequence[Listener]]:
    if not processes.leads:
        yield ()
        return
    show_start(job.recipe, job.corpus, job.budget.told())
    with watching(logistics.out, job.budget, logistics.tensorboard) as listeners:
        yield listeners


def _estimate(job: Job, how: Run, processes: Processes) -> None:
    found = estimate(job.training, how, processes, job.probes())
    if processes.leads:
        show_estimate(found, how, job.budget)


def _summary(state: State) -> dict[str, Any]:
    progress = state.progress
    return {
        "step": progress.step,
        "tokens": progress.tokens,
        "seconds": round(progress.seconds, 3),
        "best": {"loss": state.best.loss, "step": state.best.step},
    }


@dataclass(frozen=True)
class Job:
    """The parts of a wish, each made when it is first asked for."""

    wish: Wish

    def check(self) -> None:
        """Make everything that can be refused."""
        self.budget, self.recipe, self.training  # noqa: B018

    @cached_property
    def budget(self) -> Budget:
        """The one budget that was given."""
        given: list[Budget] = []
        if self.wish.steps is not None:
            given.append(Steps(self.wish.steps))
        if self.wish.tokens is not None:
            given.append(Tokens(self.wish.tokens))
        if self.wish.hours is not None:
            given.append(Hours(self.wish.hours))
        if len(given) != 1:
            found = " and ".join(budget.told() for budget in given) or "none of them"
            raise RecipeError(f"A run needs one budget: --steps, --tokens or --hours; found {found}.")
        return given[0]

    @cached_property
    def corpus(self) -> Corpus:
        """The prepared corpus."""
        return Corpus.open(self.wish.data)

    @cached_property
    def start(self) -> tuple[Model, ...]:
        """The network to begin with, with rows for all ids of the corpus; empty if weights are drawn."""
        if self.wish.start is None:
            return ()
        source = open_source(self.wish.start)
        new = Tokenizer.load(self.wish.data / "tokenizer.json")
        return (begin_from(source.model, source.tokenizer, new, str(self.wish.start)),)

    @cached_property
    def recipe(self) -> Recipe:
        """The member with all changes, in the shape of the network that it begins with."""
        wish = self.wish
        changes = [f"stages.{number}.batch={wish.batch}" for number in range(9) if wish.batch]
        recipe = resolve(wish.member, [], wish.size)
        changes = changes[: len(recipe.stages)]
        if wish.rate:
            changes.append(f"descent.optimiser.rate={wish.rate}")
        recipe = resolve(wish.member, [*changes, *wish.changes], wish.size)
        for model in self.start:
            if wish.size and recipe.trunk != model.shape:
                raise RecipeError(f"--from {wish.start} brings a network of its own size. Leave --size out.")
            recipe = replace(recipe, trunk=model.shape)
        return recipe

    @cached_property
    def training(self) -> Training:
        """Learner, course, descent, budget and seed."""
        recipe, wish = self.recipe, self.wish
        objectives = learnable(recipe.objectives)
        course = Lessons.of(recipe, self.corpus, wish.seed, wish.held_out)
        learner = Learner(recipe.trunk, objectives, self.vocabulary, self.positions)
        learner.draw(wish.seed)
        for model in self.start:
            drawn = fill_learner(learner, model)
            if drawn:
                told = f"note: {wish.start} has no weights for: {', '.join(drawn)}. These heads are drawn anew."
                console(stderr=True).print(told, markup=False, soft_wrap=True)
        return Training(learner=learner, course=course, descent=recipe.descent, budget=self.budget, seed=wish.seed)

    @property
    def vocabulary(self) -> int:
        """Rows of the token embedding: one for each id, or as many as the first network has."""
        return max([self.corpus.vocab.size, *(model.vocabulary for model in self.start)])

    @property
    def positions(self) -> int:
        """Positions: as many as the longest row, or as the first network has."""
        known = [model.positions for model in self.start]
        if known and known[0] and known[0] < self.recipe.length:
            raise RecipeError(
                f"{self.recipe.name} has rows of {self.recipe.length} tokens, but the network in {self.wish.start} has "
                f"{known[0]} positions. Shorten the rows, e.g. with --set stages.0.length={known[0]} for every stage."
            )
        return max([self.recipe.length, *known])

    @property
    def clozes(self) -> bool:
        """Whether there are masks to show how they are filled."""
        return any("tokens" in dict(head.named_children()) for head in self.training.learner.heads.values())

    def samples(self, learner: Learner, trial: Sequence[Lesson]) -> Line:
        """Some masks of the trial and how the learner fills them now."""
        return {"kind": "sample", "lines": fill_samples(learner, trial[0], self.tokenizer)}

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the corpus."""
        return Tokenizer.load(self.wish.data / "tokenizer.json")

    def probes(self) -> list[Probe]:
        """One moment for each stage, in the middle of it."""
        ends = [
            sum(stage.share for stage in self.recipe.stages[: number + 1]) for number in range(len(self.recipe.stages))
        ]
        return [
            Probe(Moment(0, end - stage.share / 2), stage.share)
            for end, stage in zip(ends, self.recipe.stages, strict=True)
        ]

    def description(self) -> dict[str, Any]:
        """What is learned: what a folder that was begun must have been begun with."""
        counts = self.corpus.manifest.counts
        unit = type(self.budget).__name__.lower()
        return {
            "unmask": __version__,
            "kind": "pretrain",
            "recipe": encode(self.recipe),
            "fingerprint": fingerprint(self.recipe),
            "budget": {unit: self.budget.count},
            "seed": self.wish.seed,
            "held_out": self.wish.held_out,
            "corpus": {
                "folder": str(self.wish.data),
                "manifest": digest_of(self.wish.data / "manifest.json"),
                "documents": counts.documents,
                "tokens": counts.tokens,
            },
            "tokenizer": self.corpus.manifest.tokenizer,
            "from": str(self.wish.start) if self.wish.start else "",
            "parameters": count(self.training.learner),
            "vocabulary": self.vocabulary,
            "positions": self.positions,
        }
