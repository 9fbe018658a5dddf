"""A course of one objective on a corpus in memory, and a learner for it: enough to drive the loop by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from small_corpus import make_corpus

from unmask.config.network import TransformerConfig
from unmask.config.optim import AdamW, Linear, OptimConfig
from unmask.data.corpus.corpus import Corpus
from unmask.data.tokenize.vocab import Vocab
from unmask.members import member
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RecipeBatches, require_trainable
from unmask.train.build_step import TrainingSpec
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.schedule import Budget

torch.set_num_threads(1)  # these networks are tiny: threads would only wait for each other

CPU = torch.device("cpu")
ALONE = DistContext(0, 1, CPU)
SIZE = 64
_TRUNK = TransformerConfig(depth=1, width=16, heads=2, ffn_width=32)


def corpus(documents: int = 40) -> Corpus:
    """Documents of five sentences, over a vocabulary of 64 ids."""
    made = make_corpus([[9, 7, 12, 8, 11]] * documents, shards=2)
    vocab = Vocab(SIZE, 1, 2, 3, 0, 4, np.arange(5, SIZE, dtype=np.int32), np.zeros(0, np.int32))
    shards = (replace(shard, ids=shard.ids % (SIZE - 5) + 5) for shard in made.shards)
    return replace(made, shards=tuple(shards), vocab=vocab)


def recipe(shares: tuple[float, ...] = (1.0,), batch: int = 4) -> Recipe:
    """BERT's task on short rows, one stage for each share; rows grow by 8 tokens from stage to stage."""
    bert = member("bert")
    stages = (
        replace(bert.stages[0], max_length=16 + 8 * n, batch_size=batch, fraction=s) for n, s in enumerate(shares)
    )
    return replace(bert, network=_TRUNK, stages=tuple(stages), optim=OptimConfig(AdamW(1e-3), Linear()))


def training(budget: Budget, made: Recipe | None = None, seed: int = 0) -> TrainingSpec:
    """A training from the very beginning."""
    made, text = made or recipe(), corpus()
    learner = MultiHeadModel(made.network, require_trainable(made.objectives), text.vocab.size, made.max_length)
    learner.init_weights(seed)
    course = RecipeBatches.of(made, text, seed, heldout_fraction=0.1)
    return TrainingSpec(model=learner, source=course, optim=made.optim, budget=budget, seed=seed)


def run_of(trials: int = 1, **logistics: float) -> RunConfig:
    return RunConfig(device=CPU, num_evals=trials, **logistics)
