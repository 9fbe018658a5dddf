"""A language model beside the task: the task's rows come first and untouched, their masked copies follow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from little_policy import DEEP, SETTINGS, TOKENIZER, tuned, tuning
from little_task import little_model

from unmask.config.attention_pattern import PREFIX_LM
from unmask.core.errors import InputError, RecipeError
from unmask.core.records import Cloze, Inputs, InputsAndTargets
from unmask.finetuning.artifact import BaseModelRef, load_finetuned, save_finetuned
from unmask.finetuning.auxiliary_lm import WithAuxiliaryLM, concat_inputs, maskable_rows
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.methods.adapter import Adapter
from unmask.finetuning.methods.frozen import FrozenEncoder, ScalarMixing
from unmask.finetuning.methods.protocol import FullFineTuning
from unmask.nets.batch.batch import collate
from unmask.objectives.mlm import MLM
from unmask.train.batches.recipe_batches import SINGLE_PROCESS, RankSplit, RunPosition
from unmask.train.rundir.run_writer import RECORD, read_record

HALF = replace(SETTINGS, lm_weight=0.5)


@pytest.fixture
def course(tmp_path):
    return WithAuxiliaryLM(tuning(tmp_path, FullFineTuning()).encode(), TOKENIZER.vocab, MLM(0.5))


def clozes(lesson):
    return [target for instance in lesson.instances for target in instance.targets if isinstance(target, Cloze)]


def rows_of(inputs: Inputs) -> list[list[int]]:
    return [inputs.ids[a:b].tolist() for a, b in zip(inputs.rows, inputs.rows[1:], strict=False)]


def test_the_rows_of_the_task_come_first_and_their_masked_copies_hold_the_truth(course):
    plain_lesson, lesson = (
        course.batches.batch(RunPosition(0, 0), SINGLE_PROCESS),
        course.batch(RunPosition(0, 0), SINGLE_PROCESS),
    )
    (bare,), (both,), (cloze,) = plain_lesson.instances, lesson.instances, clozes(lesson)
    assert rows_of(both.inputs)[:4] == rows_of(bare.inputs)
    assert both.targets[0].value.tolist() == bare.targets[0].value.tolist()
    restored = both.inputs.ids.copy()
    restored[cloze.positions] = cloze.answers
    assert restored[len(bare.inputs.ids) :].tolist() == bare.inputs.ids.tolist()
    assert cloze.positions.min() >= len(bare.inputs.ids)
    assert not np.isin(cloze.answers, [TOKENIZER.vocab.cls, TOKENIZER.vocab.sep]).any()
    budget = sum(max(1, round(0.15 * len(row))) for row in rows_of(bare.inputs))
    assert len(cloze.positions) == budget
    for name in ("segment", "position"):
        assert np.array_equal(getattr(both.inputs, name), np.tile(getattr(bare.inputs, name), 2))
    assert [one.name for one in lesson.objectives] == ["judge", "mlm"]
    assert lesson.num_predictions() == (4, budget)


def test_masks_are_new_at_every_visit_and_the_same_for_any_crew(course):
    def masked(moment: RunPosition, *crews: RankSplit) -> list[list[int]]:
        found = []
        for crew in crews:
            for instance in course.batch(moment, crew).instances:
                rows = rows_of(instance.inputs)
                found += rows[len(rows) // 2 :]
        return sorted(found)

    alone = masked(RunPosition(2, 0.3), SINGLE_PROCESS)
    assert alone == masked(RunPosition(2, 0.3), SINGLE_PROCESS)
    assert (
        alone
        == masked(RunPosition(2, 0.3), RankSplit(0, 2), RankSplit(1, 2))
        == masked(RunPosition(2, 0.3), RankSplit(microbatch_tokens=24))
    )
    first = {tuple(row) for step in range(6) for row in masked(RunPosition(step, 0), SINGLE_PROCESS)}
    second = {tuple(row) for step in range(6, 12) for row in masked(RunPosition(step, 0), SINGLE_PROCESS)}
    assert len(first & second) < len(first) / 2, "the same 24 texts, masked elsewhere"


def test_micro_batches_stay_within_their_room(course):
    for instance in course.batch(RunPosition(0, 0), RankSplit(microbatch_tokens=48)).instances:
        assert len(instance.inputs.rows) - 1 == 2


def test_who_sees_whom_in_the_rows_of_the_task_stays():
    one, zeros = np.array([2, 20, 3], dtype=np.int32), np.zeros(3, dtype=np.int32)
    rows = Inputs(one, zeros.astype(np.uint8), zeros, np.arange(3), np.array([0, 3]), prefix=np.array([2]))
    both = concat_inputs(rows, replace(rows, prefix=np.zeros(0, dtype=np.int64)))
    assert both.prefix.tolist() == [2]
    assert both.rows.tolist() == [0, 3, 6]
    sequences = collate(InputsAndTargets(both, ()), attention=PREFIX_LM).tokens.sequences
    assert sequences.prefix_lengths_S.tolist() == [2, 3], "the masked row has full attention"


def test_the_trial_asks_for_the_task_alone(course):
    assert [one.name for lesson in course.eval_batches() for one in lesson.objectives] == ["judge"]


def test_a_row_without_text_is_asked_for_its_end():
    vocab = TOKENIZER.vocab
    ids = np.array([vocab.cls, vocab.sep, vocab.cls, 20, vocab.sep], dtype=np.int32)
    zeros = np.zeros(5, dtype=np.int32)
    example = maskable_rows(
        Inputs(ids, zeros.astype(np.uint8), zeros, np.array([0, 1, 0, 1, 2]), np.array([0, 2, 5])), vocab
    )
    assert example.protected.tolist() == [True, False, True, False, True]


def test_the_losses_are_recorded_and_the_head_is_gone_afterwards(tmp_path):
    made = tuning(tmp_path, FullFineTuning(), HALF)
    done = tuned(made, tmp_path / "run")
    lines = list(read_record(tmp_path / "run" / RECORD))
    assert all(line["loss"].keys() == {"judge", "mlm"} for line in lines if line["kind"] == "step")
    assert all(line["loss"].keys() == {"judge"} for line in lines if line["kind"] == "eval")
    assert list(done.learner.heads) == ["judge"]
    save_finetuned(done, tmp_path / "run", BaseModelRef("little"), {})
    back = load_finetuned(tmp_path / "run", lambda root: made.model)
    assert back.predict(made.data.dev) == done.predict(made.data.dev)


def test_the_head_is_the_one_that_was_pre_trained():
    model = little_model(trunk=DEEP)
    learner = build_model(model, (MLM(0.5),), 3, StartFrom.PRETRAINED)
    assert torch.equal(learner.heads["mlm"].lm_head.dense.weight, model.lm_head.dense.weight)
    assert learner.heads["mlm"].lm_head.token is learner.network.embed.token


def test_lambda_weighs_the_loss(course, tmp_path):
    model = little_model(trunk=DEEP)
    learner = build_model(model, (course.batches.objective, MLM()), 3, StartFrom.PRETRAINED).eval()
    lesson = course.batch(RunPosition(0, 0), SINGLE_PROCESS)
    (batch,) = (collate(instance, attention=PREFIX_LM) for instance in lesson.instances)
    task, language = learner(batch, lesson.objectives)
    (alone,) = learner(
        collate(course.batches.batch(RunPosition(0, 0), SINGLE_PROCESS).instances[0]), (course.batches.objective,)
    )
    assert float(task.total.detach()) == pytest.approx(float(alone.total.detach()), rel=1e-5), (
        "the task does not see the other rows"
    )
    assert [one.weight for one in lesson.objectives] == [1.0, 0.5]
    assert language.count == len(clozes(lesson)[0].positions)


def test_a_network_that_says_no_tokens_is_refused(tmp_path):
    made = tuning(tmp_path, FullFineTuning())
    made.model.lm_head = None
    with pytest.raises(RecipeError, match="needs a model with an LM head, and this one has none"):
        replace(made, settings=HALF)


@pytest.mark.parametrize(
    "policy",
    [FrozenEncoder(), FrozenEncoder(cache_features=False), ScalarMixing(), ScalarMixing(cache_features=False)],
    ids=str,
)
def test_a_trunk_at_rest_is_refused(tmp_path, policy):
    with pytest.raises(RecipeError, match=f"the method '{policy.name}' freezes it"):
        tuning(tmp_path, policy, HALF)
    tuning(tmp_path, Adapter(), HALF)
    with pytest.raises(InputError, match="--lm-weight, found -1"):
        replace(SETTINGS, lm_weight=-1)
