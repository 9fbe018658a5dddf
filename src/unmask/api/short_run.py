"""`pretrain --short`: a recipe with hyperparameters for a run of minutes; task, objectives and network are kept."""

from __future__ import annotations

from dataclasses import replace

from unmask.config.optim import AdamW, Linear, Muon, OptimConfig, WarmupFraction
from unmask.tasks.recipe import Recipe, Stage

OPTIM = OptimConfig(
    Muon(lr=2e-3, adamw=AdamW(lr=5e-4, betas=(0.9, 0.98), bias_correction=True)),
    Linear(WarmupFraction(0.05)),
    max_grad_norm=1.0,
)
"""Found by trying: docs/results/long-runs.md."""

_EARLY, _LAST = 32, 128
"""Tokens in a row: in all stages but the last, and in the last."""
_TOKENS = 2048
"""In a step of any stage."""


def short_recipe(recipe: Recipe) -> Recipe:
    """The recipe with short rows, small batches, a schedule of few steps, and no dropout.

    With rows of 32 tokens and Muon, a network begins to use the context of a mask after hundreds of steps instead of
    thousands; the last stage trains positions up to 128. Dropout prevents overfitting, which does not occur when rows
    are read once or twice.
    """
    *early, last = (
        _split_stage(recipe.stages[0]) if len({stage.tasks for stage in recipe.stages}) == 1 else recipe.stages
    )
    return replace(
        recipe,
        stages=(*(_with_rows(stage, _EARLY) for stage in early), _with_rows(last, _LAST)),
        network=recipe.network.with_dropout(0.0),
        optim=OPTIM,
    )


def _split_stage(stage: Stage) -> tuple[Stage, Stage]:
    """A stage as two stages with BERT's shares: nine tenths of the budget, and the rest."""
    return replace(stage, fraction=0.9), replace(stage, fraction=0.1)


def _with_rows(stage: Stage, length: int) -> Stage:
    """Rows of this length, with as many tokens in a step as before."""
    return stage.resized(length, _TOKENS // length)
