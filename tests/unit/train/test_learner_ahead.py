"""A network ahead of the trunk in a real course: however a step is cut, every ablation learns and is judged alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from little_course import ALONE, CPU, corpus, run_of

from unmask.nets.batch import collate
from unmask.objectives.every import Every
from unmask.objectives.guess import Guess, Tie
from unmask.objectives.guessing import cloze_of
from unmask.objectives.mlm import MLM
from unmask.objectives.part import Objective
from unmask.objectives.replaced import Replaced, Where
from unmask.recipes.electra import SIZES, electra
from unmask.tasks import Recipe
from unmask.train.budget import Steps
from unmask.train.course import Crew, Moment
from unmask.train.learner import Learner
from unmask.train.lessons import Lessons, learnable
from unmask.train.samples import Filler
from unmask.train.step import Loaded
from unmask.train.training import Training
from unmask.train.trial import judge
from unmask.train.worker import make_worker

LENGTH, BATCH = 24, 6
WIRINGS: dict[str, tuple[Objective, ...]] = {
    "ELECTRA": (Guess(), Replaced()),
    "ELECTRA 15%": (Guess(), Replaced(where=Where.CHOSEN)),
    "Replace MLM": (Guess(), MLM()),
    "All-Tokens MLM": (Guess(), Every()),
    "nothing tied": (Guess(tie=Tie.NONE), Replaced()),
    "everything tied": (Guess(width=1.0, tie=Tie.ALL), Replaced()),
    "a shallow generator": (Guess(width=0.5, depth=0.5), Replaced()),
}


def small(learns: tuple[Objective, ...], dropout: float = 0.0) -> Recipe:
    made = electra(SIZES["tiny"])
    (stage,) = made.stages
    task = replace(stage.tasks[0], learns=learns)
    shape = {"width": 16, "heads": 4, "inner": 32, "embedding": 8, "spread": 0.3}
    trunk = replace(made.trunk, dropout=dropout, attention_dropout=dropout, **shape)
    return replace(made, trunk=trunk, stages=(replace(stage, tasks=(task,), length=LENGTH, batch=BATCH),))


def training(made: Recipe) -> Training:
    text = corpus()
    learner = Learner(made.trunk, learnable(made.objectives), text.vocab.size, made.length)
    learner.draw(2)
    course = Lessons.of(made, text, 2, held_out=0.1)
    return Training(learner=learner, course=course, descent=made.descent, budget=Steps(4), seed=2)


def step(made: Training, micro: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    worker = make_worker(made.learner, made.descent, False, made.seed, run_of(micro=micro), ALONE)
    lesson = made.course.lesson(Moment(0, 0.0), Crew(micro=micro))
    sums = worker.backward(Loaded.of(lesson, CPU), lesson.asked(), 0)
    return sums, {name: p.grad for name, p in made.learner.named_parameters() if p.grad is not None}


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
        found.append(judge(made.learner, made.course.trial(), run_of(), ALONE))
    assert found[0] == found[1]
    assert set(found[0].loss) == {"guess", "replaced"}


def test_another_visit_of_a_row_draws_otherwise() -> None:
    """Positions are chosen anew at every visit, and so is what is drawn for them."""
    course = training(small(WIRINGS["ELECTRA"])).course
    assert isinstance(course, Lessons)
    feed = course.feeds[0, 0]
    one, other = (collate(feed.at(np.arange(len(feed.plan)) + turn * len(feed.plan))) for turn in (0, 1))
    chances = [cloze_of(batch).chance_P for batch in (one, other)]
    assert len(chances[0]) == len(chances[1]) > 50
    assert not torch.isin(*chances).any()


def test_masks_are_filled_by_the_network_that_is_shown_masks() -> None:
    both = training(small(WIRINGS["Replace MLM"])).learner
    (filler,) = Filler.among(both, both.heads)
    assert filler.network is both.heads["guess"].network
    (usual,) = Filler.among(both, ["mlm"])
    assert usual.network is both.trunk
    assert Filler.among(training(small(WIRINGS["ELECTRA"])).learner, ["replaced"]) == ()
