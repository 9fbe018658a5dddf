"""A network ahead of the trunk in a real course: however a step is cut, every ablation learns and is judged alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from little_course import ALONE, CPU, corpus, run_of

from unmask.core.records import Cloze
from unmask.nets.batch.batch import collate
from unmask.objectives.all_tokens_mlm import AllTokensMLM
from unmask.objectives.generator import Generator, Tie
from unmask.objectives.mlm import MLM
from unmask.objectives.protocol import Objective
from unmask.objectives.rtd import RTD, JudgedTokens
from unmask.recipes.electra import SIZES, electra
from unmask.tasks.recipe import Recipe
from unmask.train.batches.recipe_batches import RankSplit, RecipeBatches, RunPosition, require_trainable
from unmask.train.build_step import TrainingSpec, build_step_runner
from unmask.train.evaluate import evaluate
from unmask.train.mask_samples import MaskFiller
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.schedule import StepBudget
from unmask.train.step import DeviceBatch

LENGTH, BATCH = 24, 6
WIRINGS: dict[str, tuple[Objective, ...]] = {
    "ELECTRA": (Generator(), RTD()),
    "ELECTRA 15%": (Generator(), RTD(judged_tokens=JudgedTokens.CHOSEN)),
    "Replace MLM": (Generator(), MLM()),
    "All-Tokens MLM": (Generator(), AllTokensMLM()),
    "nothing tied": (Generator(tie=Tie.NONE), RTD()),
    "everything tied": (Generator(width=1.0, tie=Tie.ALL), RTD()),
    "a shallow generator": (Generator(width=0.5, depth=0.5), RTD()),
}


def small(learns: tuple[Objective, ...], dropout: float = 0.0) -> Recipe:
    made = electra(SIZES["tiny"])
    (stage,) = made.stages
    task = replace(stage.tasks[0], objectives=learns)
    shape = {"width": 16, "heads": 4, "ffn_width": 32, "embedding_width": 8, "init_std": 0.3}
    trunk = replace(made.network, dropout=dropout, attention_dropout=dropout, **shape)
    return replace(made, network=trunk, stages=(replace(stage, tasks=(task,), max_length=LENGTH, batch_size=BATCH),))


def training(made: Recipe) -> TrainingSpec:
    text = corpus()
    learner = MultiHeadModel(made.network, require_trainable(made.objectives), text.vocab.size, made.max_length)
    learner.init_weights(2)
    course = RecipeBatches.of(made, text, 2, heldout_fraction=0.1)
    return TrainingSpec(model=learner, source=course, optim=made.optim, budget=StepBudget(4), seed=2)


def step(made: TrainingSpec, micro: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    worker = build_step_runner(made.model, made.optim, False, made.seed, run_of(microbatch_tokens=micro), ALONE)
    lesson = made.source.batch(RunPosition(0, 0.0), RankSplit(microbatch_tokens=micro))
    sums = worker.backward(DeviceBatch.of(lesson, CPU), lesson.num_predictions(), 0)
    return sums, {name: p.grad for name, p in made.model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("wiring", WIRINGS)
def test_a_step_is_the_same_however_it_is_cut(wiring: str) -> None:
    recipe = small(WIRINGS[wiring])
    whole, split = (step(training(recipe), rows * LENGTH) for rows in (BATCH, 1))
    assert torch.allclose(whole[0], split[0], rtol=1e-5)
    assert whole[1].keys() == split[1].keys()
    for name, gradient in whole[1].items():
        assert (gradient - split[1][name]).abs().max() <= 1e-4 * gradient.abs().max() + 1e-7, name


def test_a_trial_is_always_the_same() -> None:
    made = training(small(WIRINGS["ELECTRA"], dropout=0.1))
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(evaluate(made.model, made.source.eval_batches(), run_of(), ALONE))
    assert found[0] == found[1]
    assert set(found[0].loss) == {"guess", "replaced"}


def test_another_visit_of_a_row_draws_otherwise() -> None:
    """Positions are chosen anew at every visit, and so is what is drawn for them."""
    course = training(small(WIRINGS["ELECTRA"])).source
    assert isinstance(course, RecipeBatches)
    feed = course.task_batches[0, 0]
    one, other = (collate(feed.batch_at(np.arange(len(feed.plan)) + turn * len(feed.plan))) for turn in (0, 1))
    chances = [batch.target(Cloze).uniform for batch in (one, other)]
    assert len(chances[0]) == len(chances[1]) > 50
    assert not torch.isin(*chances).any()


def test_masks_are_filled_by_the_network_that_is_shown_masks() -> None:
    both = training(small(WIRINGS["Replace MLM"])).model
    (filler,) = MaskFiller.find(both, both.heads)
    assert filler.network is both.heads["guess"].encoder
    (usual,) = MaskFiller.find(both, ["mlm"])
    assert usual.network is both.network
    assert MaskFiller.find(training(small(WIRINGS["ELECTRA"])).model, ["replaced"]) == ()
