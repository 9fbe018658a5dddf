"""Members made small enough to be trained in a second, and a little text to train them on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from law_texts import SENTENCES, SPECS, Ground
from torch import Tensor

from unmask.config.network import (
    EmbeddingTableConfig,
    EncoderDecoderConfig,
    LSTMConfig,
    NetworkConfig,
    TransformerConfig,
)
from unmask.config.optim import LAMB, Linear, OptimConfig, WarmupFraction
from unmask.data.corpus.corpus import Corpus
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.members import members
from unmask.objectives.generator import Generator
from unmask.objectives.mlm import MLM
from unmask.objectives.protocol import Objective
from unmask.tasks.recipe import Recipe, Task
from unmask.train.batches.recipe_batches import BatchSource, RankSplit, RecipeBatches, RunPosition, require_trainable
from unmask.train.build_step import TrainingSpec, build_step_runner
from unmask.train.loop import train
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.rundir.run_writer import RECORD, read_record
from unmask.train.schedule import StepBudget
from unmask.train.step import StepRunner

torch.set_num_threads(1)  # these networks are tiny: threads would only wait for each other

CPU = torch.device("cpu")
ALONE = DistContext(0, 1, CPU)
SEED, BATCH, LENGTH = 3, 8, 32


def trained_members() -> tuple[Recipe, ...]:
    """Every member whose objectives all have heads, as a small network. The others can be walked and audited only."""
    return tuple(small(one) for one in members() if all(o.has_head for o in one.objectives))


def trained_encoders() -> tuple[Recipe, ...]:
    """Those of them whose network is a Transformer encoder."""
    return tuple(one for one in trained_members() if isinstance(one.network, TransformerConfig))


def two_tasks() -> Recipe:
    """A recipe of two tasks that differ in what they learn, so that a head rests in some steps."""
    recipe = next(one for one in trained_members() if len(one.objectives) > 1)
    stage = recipe.stages[0]
    bare = Task(
        name="bare", examples=Packed(DocumentBoundary.ACROSS), corruption=stage.tasks[0].corruption, objectives=(MLM(),)
    )
    both = replace(stage, tasks=(*stage.tasks, bare), task_weights=(0.5, 0.5), fraction=1.0)
    return replace(recipe, name="two tasks", stages=(both,))


def small(recipe: Recipe) -> Recipe:
    """The member with all that makes it what it is, but little of it: two thin layers and short rows."""
    short = small_network(recipe.network)
    stages = (stage.resized(LENGTH + 16 * n, BATCH) for n, stage in enumerate(recipe.stages))
    return replace(recipe, network=short, stages=tuple(stages))


def small_network(config: NetworkConfig) -> NetworkConfig:
    """The same kind of network, thin."""
    match config:
        case TransformerConfig():
            narrow = 16 if config.embedding_width else 0
            memory = LENGTH if config.memory_length else 0
            config = replace(config, memory_length=memory, embedding_width=narrow)
            return replace(config, depth=2, width=32, heads=2, ffn_width=64)
        case EncoderDecoderConfig():
            return replace(config, encoder=small_network(config.encoder), decoder=small_network(config.decoder))
        case LSTMConfig():
            return replace(config, depth=2, direction_width=16, cell_width=32)
        case EmbeddingTableConfig():
            return replace(config, width=32)


def wide_network(config: NetworkConfig) -> NetworkConfig:
    """The same kind of network, a little wider."""
    match config:
        case TransformerConfig():
            narrow = 32 * bool(config.embedding_width)
            return replace(config, width=64, heads=4, ffn_width=256, init_std=0.1, embedding_width=narrow)
        case EncoderDecoderConfig():
            return replace(config, encoder=wide_network(config.encoder), decoder=wide_network(config.decoder))
        case LSTMConfig():
            return replace(config, direction_width=64, cell_width=128, init_std=0.1)
        case EmbeddingTableConfig():
            return replace(config, width=64, init_std=0.1)


def dry(recipe: Recipe) -> Recipe:
    """Without dropout, whose draws depend on how a step is split."""
    return replace(recipe, network=recipe.network.with_dropout(0.0))


def fast(recipe: Recipe, rate: float) -> Recipe:
    """With a rate for a small network and a short run."""
    return replace(recipe, optim=OptimConfig(replace(recipe.optim.optimizer, lr=rate), recipe.optim.schedule, 1.0))


@cache
def ground() -> Ground:
    """A WordPiece vocabulary that knows all of the text, with similar words."""
    return Ground.of(SPECS["wordpiece"])


@cache
def text() -> Corpus:
    """Sixteen documents: the same sentences in other orders."""
    turns = (SENTENCES[turn:] + SENTENCES[:turn] for turn in range(len(SENTENCES)))
    return ground().corpus([" ".join(turn[:size]) for turn in turns for size in (3, 5)] + [SENTENCES[0], SENTENCES[5]])


@cache
def few() -> Corpus:
    """Six documents: four to learn by heart, two to be judged by."""
    return ground().corpus([" ".join(SENTENCES[turn:] + SENTENCES[:turn]) for turn in range(4)])


def training(recipe: Recipe, steps: int, seed: int = SEED, corpus: Corpus | None = None) -> TrainingSpec:
    """A training from the very beginning."""
    corpus = corpus or text()
    learner = MultiHeadModel(
        recipe.network,
        require_trainable(recipe.objectives),
        corpus.vocab.size,
        recipe.max_length,
        recipe.loss_weighting,
    )
    learner.init_weights(seed)
    course = RecipeBatches.of(recipe, corpus, seed, heldout_fraction=0.2)
    return TrainingSpec(model=learner, source=course, optim=recipe.optim, budget=StepBudget(steps), seed=seed)


def learning_by_heart(recipe: Recipe) -> Recipe:
    """The member on its main stage, a little wider, in a run that is short enough for a test.

    The warm-up is a fifth of the run, because a hundredth of it would be one step; the rate is one for small networks;
    all tasks of a stage come equally often, because there is no time for one that comes rarely; a generator is as wide
    as its trunk, because a thin one learns by heart more slowly.
    """
    main = max(recipe.stages, key=lambda stage: stage.fraction)
    tasks = tuple(replace(task, objectives=tuple(map(as_wide, task.objectives))) for task in main.tasks)
    main = replace(main, tasks=tasks, task_weights=(1 / len(main.tasks),) * len(main.tasks))
    wide = wide_network(recipe.network)
    optimizer = replace(recipe.optim.optimizer, lr=2e-2 if isinstance(recipe.optim.optimizer, LAMB) else 3e-3)
    descent = OptimConfig(optimizer, Linear(WarmupFraction(0.2)), max_grad_norm=1.0)
    rows = 4 if main.tasks[0].examples.num_streams else 16  # as many streams as four documents fill
    return dry(
        replace(
            recipe, network=wide, stages=(replace(main.resized(main.max_length, rows), fraction=1.0),), optim=descent
        )
    )


def as_wide(objective: Objective) -> Objective:
    """The objective; if it has a network of its own ahead of the trunk, one of the trunk's size."""
    return replace(objective, width=1.0) if isinstance(objective, Generator) else objective


def uneven(course: BatchSource) -> RunPosition:
    """A moment whose rows are not all equally long; the first one, where rows of streams always are."""
    moments = (RunPosition(step, 0.0) for step in range(99))
    lengths = (set(np.diff(course.batch(one, RankSplit()).instances[0].inputs.rows).tolist()) for one in moments)
    return RunPosition(next((step for step, found in enumerate(lengths) if len(found) > 1), 0), 0.0)


def run_of(**logistics: object) -> RunConfig:
    """A run on the CPU that is judged at its two ends only, unless something else is said."""
    return RunConfig(**{"device": CPU, "num_evals": 1, **logistics})


def worker_for(made: TrainingSpec, run: RunConfig, processes: DistContext = ALONE) -> StepRunner:
    """What a step of this training is done with."""
    return build_step_runner(made.model, made.optim, made.source.heads_vary, made.seed, run, processes)


def curve(recipe: Recipe, steps: int, folder: Path, **logistics: object) -> list[dict[str, Any]]:
    """What the record says of every step of a training that is done now."""
    return lines_of(training(recipe, steps), folder, **logistics)


def lines_of(made: TrainingSpec, folder: Path, **logistics: object) -> list[dict[str, Any]]:
    """What the record says of every step of this training."""
    train(made, run_of(**logistics), ALONE, folder)
    return [line for line in read_record(folder / RECORD) if line["kind"] == "step"]


def losses(lines: list[dict[str, Any]]) -> list[float]:
    """All losses of a curve, step by step and objective by objective."""
    return [loss for line in lines for loss in line["loss"].values()]


def assert_same_gradients(mine: Mapping[str, Tensor], theirs: Mapping[str, Tensor], bound: float) -> None:
    """Gradients of the same parameters, apart by no more than a part of the largest number in each."""
    assert mine.keys() == theirs.keys()
    for name, gradient in theirs.items():
        apart = (mine[name] - gradient).abs().max()
        assert apart <= bound * gradient.abs().max().clamp_min(1e-3), name
