"""What members set against each other is a part that any member can take, and can be typed for --set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from little_text import SIZE, corpus

from unmask.config.attention_pattern import FULL
from unmask.config.network import Sharing
from unmask.core.codec import override_many
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.row_plan import StaticMasking
from unmask.members import member
from unmask.tasks.batches import TaskBatches
from unmask.train.batches.recipe_batches import StepBatch, require_trainable
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.step import DeviceBatch

torch.set_num_threads(1)
EXAMPLES, LEARNS = "stages.*.tasks.0.examples", "stages.*.tasks.0.objectives"
WIRINGS = {
    "next": [(EXAMPLES, "SegmentPairs(negative=random)"), (LEARNS, "MLM(), RowFactObjective(fact=next)")],
    "order": [(EXAMPLES, "SegmentPairs(negative=swapped)"), (LEARNS, "MLM(), RowFactObjective(fact=order)")],
    "pair": [(EXAMPLES, "SegmentPairs(negative=both)"), (LEARNS, "MLM(), RowFactObjective(fact=pair)")],
    "": [(LEARNS, "MLM()")],
}
"""Next sentence, sentence order, both in one, neither."""


def small(recipe):
    """The member on rows of 32 tokens, two layers deep."""
    stages = tuple(replace(stage, max_length=32) for stage in recipe.stages)
    trunk = replace(
        recipe.network,
        depth=2,
        width=16,
        heads=2,
        ffn_width=32,
        embedding_width=8 if recipe.network.embedding_width else 0,
    )
    return replace(recipe, stages=stages, network=trunk)


def losses(recipe):
    """One pass over four rows: the terms, and how many answers each objective said that it would be judged on."""
    instance = TaskBatches.of(recipe, corpus(), seed=1).batch_at(np.arange(4))
    objectives = require_trainable(recipe.stages[0].tasks[0].objectives)
    learner = MultiHeadModel(recipe.network, objectives, SIZE, recipe.max_length)
    learner.init_weights(0)
    lesson = StepBatch((instance,), objectives, FULL, "", recipe.max_length)
    (batch,) = DeviceBatch.of(lesson, torch.device("cpu")).batches
    terms = learner(batch, objectives)
    sum(term.total for term in terms).backward()
    heads = [parameter.grad for parameter in learner.heads.parameters()]
    assert all(grad is not None and grad.isfinite().all() for grad in heads)
    return terms, [one.num_predictions(instance) for one in objectives if one.has_head]


@pytest.mark.parametrize("name", ["albert", "roberta", "wwm", "spanbert"])
@pytest.mark.parametrize("truth", WIRINGS)
def test_any_member_takes_any_sentence_task(name, truth):
    recipe = small(override_many(member(name), WIRINGS[truth]))
    for task in recipe.tasks:
        assert [one.name for one in task.objectives] == ["mlm", *([truth] if truth else [])]
    terms, asked = losses(recipe)
    assert [term.count for term in terms] == asked
    assert all(term.total > 0 for term in terms)


def test_both_tasks_in_one_have_three_classes():
    recipe = small(override_many(member("bert"), WIRINGS["pair"]))
    learner = MultiHeadModel(recipe.network, require_trainable(recipe.objectives), SIZE, 32)
    assert learner.heads["pair"].row_head.classify.out_features == 3
    values = TaskBatches.of(recipe, corpus(), seed=1).batch_at(np.arange(60)).targets[-1].value
    assert set(values.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("name", ["bert", "roberta", "albert", "wwm", "wwm-ext", "spanbert"])
def test_a_member_as_it_is_learns_what_it_asks(name):
    terms, asked = losses(small(member(name)))
    assert [term.count for term in terms] == asked
    assert min(asked) > 0


@pytest.mark.parametrize(
    ("typed", "copies"), [("StaticMasking(1)", 1), ("StaticMasking(num_copies=10)", 10), ("StaticMasking", 10)]
)
def test_static_masking_is_one_word_away_from_dynamic(typed, copies):
    recipe = small(override_many(member("roberta"), [("masking", typed)]))
    assert recipe.masking == StaticMasking(copies)
    feed = TaskBatches.of(recipe, corpus(), seed=1)
    visits = np.arange(2 * copies) * len(feed.plan)  # the visits of some row, pass after pass
    rows, keys = feed.build_rows(np.array([0])), feed.sampler.key_of
    passes = [feed.task.corruption(rows, feed.corpus.vocab, keys(np.array([0]), at))
              for at in (visits // len(feed.plan))[:, None]]  # fmt: skip
    masks = [tuple(one.targets[0].positions.tolist()) for one in passes]
    assert masks[:copies] == masks[copies:]
    assert len(set(masks)) > copies // 2


def test_doc_sentences_never_cross_a_document_and_full_sentences_do():
    full = small(member("roberta"))
    doc = override_many(full, [("stages.0.tasks.0.examples.join", "never")])
    assert doc.tasks[0].examples == Packed(DocumentBoundary.NEVER)
    crossed = []
    for recipe in (full, doc):
        feed = TaskBatches.of(
            replace(recipe, stages=tuple(replace(s, max_length=60) for s in recipe.stages)), corpus(), seed=1
        )
        example = feed.build_rows(np.arange(len(feed.plan)))
        inner = example.protected.copy()
        inner[example.rows[:-1]] = inner[example.rows[1:] - 1] = False
        crossed.append(int(inner.sum()))
    assert crossed[0] > 0
    assert crossed[1] == 0


@pytest.mark.parametrize("sharing", Sharing)
def test_albert_learns_whatever_it_shares(sharing):
    recipe = small(member("albert"))
    terms, asked = losses(replace(recipe, network=replace(recipe.network, sharing=sharing)))
    assert [term.count for term in terms] == asked
