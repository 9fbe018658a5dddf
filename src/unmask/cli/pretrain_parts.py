"""What a user wished for when pre-training, turned into parts.

What arrives: the plain values of the command line. What leaves: budget, recipe, course and learner, and a description
by which a folder knows its run again.
What never happens here: training, or a word to the user but a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from unmask import __version__
from unmask.cli.short import shortened
from unmask.cli.terminal import changed
from unmask.codec import encode, fingerprint
from unmask.errors import RecipeError
from unmask.export.source import Network, open_source
from unmask.export.start import begin_from, fill_learner
from unmask.family import member, sizes
from unmask.lab.flops import Meter
from unmask.nets.model import Model
from unmask.nets.sizes import Size
from unmask.nets.transformer import count
from unmask.nets.trunk import Trunk
from unmask.shards.corpus import Corpus
from unmask.shards.files import digest_of, digest_of_bytes
from unmask.tasks import Recipe
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.budget import Budget, Hours, Steps, Tokens
from unmask.train.course import Lesson, Moment
from unmask.train.estimate import Probe
from unmask.train.learner import Learner
from unmask.train.lessons import Lessons, learnable, shows_similar
from unmask.train.record import Line
from unmask.train.samples import Filler, fill_samples
from unmask.train.training import Training

_EXAMPLE = "stages.0.length=256"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be learned. What is empty or nothing was not wished for."""

    member: str
    size: str
    changes: tuple[str, ...]
    batch: int | None
    rate: float | None
    short: bool
    data: Path
    start: Path | None
    seed: int
    held_out: float
    steps: int | None
    tokens: int | None
    hours: float | None
    flops: float | None = None


@dataclass(frozen=True)
class Pretraining:
    """The parts of a wish, each made when it is first asked for."""

    wish: Wish

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
        flops = () if self.wish.flops is None else (self.wish.flops,)
        if len(given) + len(flops) != 1:
            found = " and ".join([*(budget.told() for budget in given), *(f"{one:g} FLOPs" for one in flops)])
            raise RecipeError(
                f"A run needs one budget: --steps, --tokens, --hours or --flops; found {found or 'none of them'}."
            )
        # A run is planned in steps, so operations are turned into steps before it begins.
        return given[0] if given else Steps(self.meter.steps(*flops))

    @property
    def meter(self) -> Meter:
        """What its steps cost in floating point operations."""
        return Meter.of(self.course, self.vocabulary)

    @cached_property
    def corpus(self) -> Corpus:
        """The prepared corpus."""
        return Corpus.open(self.wish.data)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the corpus."""
        return Tokenizer.load(self.wish.data / "tokenizer.json")

    @cached_property
    def start(self) -> tuple[Model, ...]:
        """The network to begin with, with rows for all ids of the corpus; empty if weights are drawn."""
        return tuple(self._fitted(source.model, source.tokenizer) for source in self._sources)

    @cached_property
    def _sources(self) -> tuple[Network, ...]:
        """What `--from` names, as it lies there."""
        return (open_source(self.wish.start),) if self.wish.start else ()

    def _fitted(self, model: Model, tokenizer: Tokenizer) -> Model:
        return begin_from(model, tokenizer, self.tokenizer, str(self.wish.start))

    @cached_property
    def recipe(self) -> Recipe:
        """The member with all changes, in the shape of the network that it begins with."""
        wish = self.wish
        recipe = self._member
        changes = [f"stages.{number}.batch={wish.batch}" for number in range(len(recipe.stages)) if wish.batch]
        changes += [f"descent.optimiser.rate={wish.rate}"] if wish.rate is not None else []
        recipe = changed(recipe, [*changes, *(one for one in wish.changes if not _about_tasks(one))], _EXAMPLE)
        for model in self.start:
            if wish.size and not _same_size(recipe.trunk, model.shape):
                raise RecipeError(f"--from {wish.start} brings a network of its own size. Leave --size out.")
            if recipe.trunk.segments > model.shape.segments:
                raise RecipeError(
                    f"{recipe.name} has rows of {recipe.trunk.segments} segments, but the network in {wish.start} "
                    f"knows {model.shape.segments}. Take a member whose rows have no more, or another network."
                )
            recipe = replace(recipe, trunk=_with_dropout(model.shape, recipe.trunk))
        return recipe

    @property
    def _member(self) -> Recipe:
        """The member as published, or for a short run.

        What its tasks are is changed before a short run parts its stages, so that a path of the published recipe
        holds for every part. All other changes come later, because they are about what a short run has set.
        """
        tasks = [one for one in self.wish.changes if _about_tasks(one)]
        published = changed(member(self.wish.member, self._size), tasks, _EXAMPLE)
        return shortened(published) if self.wish.short else published

    @property
    def _size(self) -> str:
        """The size that was wished for; else that of the network to begin with, where the member has such a size."""
        name, _, _ = self.wish.member.partition(":")
        if self.wish.size or not self.start or name.endswith(".py"):
            return self.wish.size
        return next((size for size, known in sizes(name).items() if _same_size(known, self.start[0].shape)), "")

    @cached_property
    def course(self) -> Lessons:
        """What is learned at every moment."""
        return Lessons.of(self.recipe, self.corpus, self.wish.seed, self.wish.held_out)

    @property
    def learner(self) -> Learner:
        """The network with its first weights: drawn, or those that it begins with."""
        return self._begun[0]

    @property
    def drawn(self) -> tuple[str, ...]:
        """The heads for which the network to begin with has no weights."""
        return self._begun[1]

    @cached_property
    def _begun(self) -> tuple[Learner, tuple[str, ...]]:
        objectives = learnable(self.recipe.objectives)
        learner = Learner(self.recipe.trunk, objectives, self.vocabulary, self.positions, self.recipe.balance)
        learner.draw(self.wish.seed)
        found = [self._fitted(one.generator, one.tokenizer) for one in self._sources if one.generator is not None]
        generator = next(iter(found), None)
        return learner, tuple(name for model in self.start for name in fill_learner(learner, model, generator))

    @property
    def training(self) -> Training:
        """Learner, course, descent, budget and seed."""
        return Training(
            learner=self.learner,
            course=self.course,
            descent=self.recipe.descent,
            budget=self.budget,
            seed=self.wish.seed,
        )

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
    def fills(self) -> bool:
        """Whether a head says tokens, so that one can look on while masks are filled."""
        return bool(Filler.among(self.learner, self.learner.heads))

    def samples(self, learner: Learner, trial: Sequence[Lesson]) -> Line:
        """Some masks of the trial and how the learner fills them now."""
        return {"kind": "sample", "lines": fill_samples(learner, trial[0], self.tokenizer)}

    def probes(self) -> list[Probe]:
        """One moment for each stage, in the middle of it."""
        stages = self.recipe.stages
        ends = accumulate(stage.share for stage in stages)
        return [Probe(Moment(0, end - stage.share / 2), stage.share) for end, stage in zip(ends, stages, strict=True)]

    def description(self) -> dict[str, Any]:
        """What is learned: what a folder that was begun must have been begun with."""
        wish, manifest = self.wish, self.corpus.manifest
        return {
            "unmask": __version__,
            "kind": "pretrain",
            "recipe": encode(self.recipe),
            "fingerprint": fingerprint(self.recipe),
            "budget": {type(self.budget).__name__.lower(): self.budget.count},
            "seed": wish.seed,
            "held_out": wish.held_out,
            "corpus": {
                "folder": str(wish.data.resolve()),  # a report is made from anywhere
                "manifest": digest_of(wish.data / "manifest.json"),
                "documents": manifest.counts.documents,
                "tokens": manifest.counts.tokens,
                **self._similar(),
            },
            "tokenizer": manifest.tokenizer,
            "from": str(wish.start.resolve()) if wish.start else "",
            "parameters": count(self.learner),
            "vocabulary": self.vocabulary,
            "positions": self.positions,
        }

    def _similar(self) -> dict[str, str]:
        """The table of similar words, where some task shows them."""
        if not any(map(shows_similar, self.recipe.tasks)):
            return {}
        arrays = self.corpus.vocab.stand_ins.arrays().values()
        return {"similar": digest_of_bytes(b"".join(array.tobytes() for array in arrays))}


def _with_dropout(shape: Trunk, like: Trunk) -> Trunk:
    """A given shape; what is dropped in training and how rows are pooled is no part of it: the recipe says it."""
    return replace(shape, dropout=like.dropout, attention_dropout=like.attention_dropout, pooled=like.pooled)


def _about_tasks(change: str) -> bool:
    """Whether a change is about what the tasks of a stage are, not about how long or how wide."""
    path = change.partition("=")[0].split(".")
    return path[0] == "stages" and "tasks" in path[1:3]


def _same_size(one: Trunk | Size, other: Trunk) -> bool:
    """Whether two networks are equally deep and wide; dropout and the like may differ."""
    return (one.depth, one.width, one.heads, one.inner) == (other.depth, other.width, other.heads, other.inner)
