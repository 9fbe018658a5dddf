"""A pre-training request, and what it resolves to: budget, recipe, batches, model, and the text of run.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from unmask import __version__
from unmask.config.network import NetworkConfig
from unmask.config.sizes import Size
from unmask.core.codec import encode, fingerprint
from unmask.core.errors import RecipeError
from unmask.core.io.atomic import digest_bytes, digest_file
from unmask.data.corpus.corpus import Corpus
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.members import apply_changes, member, sizes
from unmask.nets.encoder import num_parameters
from unmask.nets.model import EncoderWithHeads
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import (
    RecipeBatches,
    RunPosition,
    StepBatch,
    require_trainable,
    uses_similar_words,
)
from unmask.train.build_step import TrainingSpec
from unmask.train.cost_estimate import CostProbe
from unmask.train.mask_samples import MaskFiller, sample_fills
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.rundir.run_writer import LogLine
from unmask.train.schedule import Budget, StepBudget, TimeBudget, TokenBudget

if TYPE_CHECKING:
    from unmask.loading.open_model import LoadedNetwork
    from unmask.train.flops_meter import FlopsMeter

Preset: TypeAlias = Literal["published", "short"]
_EXAMPLE = "stages.0.max_length=256"


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainRequest:
    """The recipe, the data and the budget of a run. Empty fields take the value of the recipe."""

    member: str | Recipe
    """The name of a member, `your_file.py:name`, or a recipe."""
    data: Path
    size: str = ""
    changes: tuple[str, ...] = ()
    """Changes of the recipe: PATH=VALUE."""
    batch_size: int | None = None
    lr: float | None = None
    preset: Preset = "published"
    """`short`: the recipe adapted to runs of minutes."""
    init_from: Path | None = None
    seed: int = 0
    heldout_fraction: float = 0.01
    steps: int | None = None
    tokens: int | None = None
    hours: float | None = None
    flops: float | None = None


@dataclass(frozen=True)
class PretrainSetup:
    """The parts of a request, each made on first use."""

    request: PretrainRequest

    @cached_property
    def budget(self) -> Budget:
        """The one budget that was given."""
        given: list[Budget] = []
        if self.request.steps is not None:
            given.append(StepBudget(self.request.steps))
        if self.request.tokens is not None:
            given.append(TokenBudget(self.request.tokens))
        if self.request.hours is not None:
            given.append(TimeBudget(self.request.hours))
        flops = () if self.request.flops is None else (self.request.flops,)
        if len(given) + len(flops) != 1:
            found = " and ".join([*(budget.text() for budget in given), *(f"{one:g} FLOPs" for one in flops)])
            raise RecipeError(
                f"A run needs one budget: --steps, --tokens, --hours or --flops; found {found or 'none of them'}."
            )
        # A run is planned in steps, so operations are turned into steps before it begins.
        return given[0] if given else StepBudget(self.meter.steps(*flops))

    @property
    def meter(self) -> FlopsMeter:
        """What its steps cost in floating point operations."""
        from unmask.train.flops_meter import FlopsMeter

        return FlopsMeter.of(self.batch_source, self.vocab_size)

    @cached_property
    def corpus(self) -> Corpus:
        """The prepared corpus."""
        return Corpus.open(self.request.data)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the corpus."""
        return Tokenizer.load(self.request.data / "tokenizer.json")

    @cached_property
    def initial_model(self) -> tuple[EncoderWithHeads, ...]:
        """The network to begin with, with rows for all ids of the corpus; empty if weights are drawn."""
        return tuple(self._fit_to_tokenizer(source.model, source.tokenizer) for source in self._sources)

    @cached_property
    def _sources(self) -> tuple[LoadedNetwork, ...]:
        """What `--from` names, as it lies there."""
        if not self.request.init_from:
            return ()
        from unmask.loading.open_model import open_model

        return (open_model(self.request.init_from, any_attention=True),)

    def _fit_to_tokenizer(self, model: EncoderWithHeads, tokenizer: Tokenizer) -> EncoderWithHeads:
        from unmask.loading.warm_start import adapt_to_tokenizer

        return adapt_to_tokenizer(model, tokenizer, self.tokenizer, str(self.request.init_from))

    @cached_property
    def recipe(self) -> Recipe:
        """The member with all changes, in the shape of the network that it begins with."""
        request = self.request
        recipe = self._member
        changes = [
            f"stages.{number}.batch_size={request.batch_size}"
            for number in range(len(recipe.stages))
            if request.batch_size
        ]
        changes += [f"optim.optimizer.lr={request.lr}"] if request.lr is not None else []
        recipe = apply_changes(recipe, [*changes, *(one for one in request.changes if not _about_tasks(one))], _EXAMPLE)
        for model in self.initial_model:
            if request.size and not _same_size(recipe.network, model.config):
                raise RecipeError(
                    f"--init-from {request.init_from} brings a network of its own size. Leave --size out."
                )
            if recipe.network.num_segments > model.config.num_segments:
                raise RecipeError(
                    f"{recipe.name} has rows of {recipe.network.num_segments} segments, but the network in "
                    f"{request.init_from} knows {model.config.num_segments}. Take a member whose rows have no more, or "
                    "another network."
                )
            recipe = replace(recipe, network=model.config.with_settings_of(recipe.network))
        return recipe

    @property
    def _member(self) -> Recipe:
        """The member as published, or for a short run.

        What its tasks are is changed before a short run parts its stages, so that a path of the published recipe
        holds for every part. All other changes come later, because they are about what a short run has set.
        """
        tasks = [one for one in self.request.changes if _about_tasks(one)]
        named = self.request.member
        found = named if isinstance(named, Recipe) else member(named, self._size)
        published = apply_changes(found, tasks, _EXAMPLE)
        if self.request.preset == "published":
            return published
        from unmask.api.short_run import short_recipe

        return short_recipe(published)

    @property
    def _size(self) -> str:
        """The requested size; else that of the initial network, where the member has such a size."""
        named = self.request.member
        name = named.name if isinstance(named, Recipe) else named.partition(":")[0]
        if self.request.size or not self.initial_model or name.endswith(".py"):
            return self.request.size
        return next(
            (size for size, known in sizes(name).items() if _same_size(known, self.initial_model[0].config)), ""
        )

    @cached_property
    def batch_source(self) -> RecipeBatches:
        """The batches of every step."""
        return RecipeBatches.of(self.recipe, self.corpus, self.request.seed, self.request.heldout_fraction)

    @property
    def model(self) -> MultiHeadModel:
        """The network with its first weights: drawn, or those that it begins with."""
        return self._initialized[0]

    @property
    def heads_from_scratch(self) -> tuple[str, ...]:
        """The heads for which the network to begin with has no weights."""
        return self._initialized[1]

    @cached_property
    def _initialized(self) -> tuple[MultiHeadModel, tuple[str, ...]]:
        objectives = require_trainable(self.recipe.objectives)
        built = MultiHeadModel(
            self.recipe.network, objectives, self.vocab_size, self.num_positions, self.recipe.loss_weighting
        )
        built.init_weights(self.request.seed)
        if not self.initial_model:
            return built, ()
        from unmask.loading.warm_start import load_matching_weights

        (model,), (source,) = self.initial_model, self._sources
        generator = source.generator and self._fit_to_tokenizer(source.generator, source.tokenizer)
        return built, load_matching_weights(built, model, generator)

    @property
    def training_spec(self) -> TrainingSpec:
        """Model, batches, optimization, budget and seed."""
        return TrainingSpec(
            model=self.model,
            source=self.batch_source,
            optim=self.recipe.optim,
            budget=self.budget,
            seed=self.request.seed,
        )

    @property
    def vocab_size(self) -> int:
        """Rows of the token embedding: one for each id, or as many as the first network has."""
        return max([self.corpus.vocab.size, *(model.vocab_size for model in self.initial_model)])

    @property
    def num_positions(self) -> int:
        """Positions: as many as the longest row, or as the first network has."""
        known = [model.max_positions for model in self.initial_model]
        if known and known[0] and known[0] < self.recipe.max_length:
            raise RecipeError(
                f"{self.recipe.name} has rows of {self.recipe.max_length} tokens, but the network in "
                f"{self.request.init_from} has {known[0]} positions. Shorten the rows, e.g. with --set "
                f"stages.0.max_length={known[0]} for every stage."
            )
        return max([self.recipe.max_length, *known])

    @property
    def predicts_tokens(self) -> bool:
        """Whether a head predicts tokens, so that sample predictions can be shown."""
        return bool(MaskFiller.find(self.model, self.model.heads))

    def sample_fills(self, model: MultiHeadModel, trial: Sequence[StepBatch]) -> LogLine:
        """Some masks of the evaluation batches and the current predictions."""
        return {"kind": "samples", "lines": sample_fills(model, trial[0], self.tokenizer)}

    def cost_probes(self) -> list[CostProbe]:
        """One probe for each stage, at its middle."""
        stages = self.recipe.stages
        ends = accumulate(stage.fraction for stage in stages)
        return [
            CostProbe(RunPosition(0, end - stage.fraction / 2), stage.fraction)
            for end, stage in zip(ends, stages, strict=True)
        ]

    def description(self) -> dict[str, Any]:
        """What is learned: what a folder that was begun must have been begun with."""
        request, manifest = self.request, self.corpus.manifest
        return {
            "unmask": __version__,
            "kind": "pretrain",
            "recipe": encode(self.recipe),
            "fingerprint": fingerprint(self.recipe),
            "budget": {self.budget.unit: self.budget.count},
            "seed": request.seed,
            "held_out": request.heldout_fraction,
            "corpus": {
                "folder": str(request.data.resolve()),  # a report is made from anywhere
                "manifest": digest_file(request.data / "manifest.json"),
                "documents": manifest.counts.documents,
                "tokens": manifest.counts.tokens,
                **self._similar_words(),
            },
            "tokenizer": manifest.tokenizer,
            "from": str(request.init_from.resolve()) if request.init_from else "",
            "parameters": num_parameters(self.model),
            "vocabulary": self.vocab_size,
            "positions": self.num_positions,
        }

    def _similar_words(self) -> dict[str, str]:
        """The table of similar words, where some task shows them."""
        if not any(map(uses_similar_words, self.recipe.tasks)):
            return {}
        arrays = self.corpus.vocab.similar_words.arrays().values()
        return {"similar": digest_bytes(b"".join(array.tobytes() for array in arrays))}


def _about_tasks(change: str) -> bool:
    """Whether a change is about what the tasks of a stage are, not about how long or how wide."""
    path = change.partition("=")[0].split(".")
    return path[0] == "stages" and "tasks" in path[1:3]


def _same_size(one: NetworkConfig | Size, other: NetworkConfig) -> bool:
    """Whether two networks have the same depth and widths; dropout and the like may differ."""
    return (one if isinstance(one, Size) else one.size) == other.size
