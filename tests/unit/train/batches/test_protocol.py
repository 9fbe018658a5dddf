"""Who takes which rows, which stage a moment belongs to, and a trial that never moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from little_course import corpus, recipe

from unmask.core.errors import CorpusError, RecipeError
from unmask.members import member
from unmask.objectives.language_model import PLM
from unmask.objectives.mlm import MLM
from unmask.objectives.sbo import SBO
from unmask.objectives.sentence_pair import NSP, SOP
from unmask.train.batches.recipe_batches import (
    RankSplit,
    RecipeBatches,
    RunPosition,
    require_trainable,
    unigram_entropy,
)


@given(st.integers(1, 64), st.integers(1, 8), st.integers(1, 2000), st.integers(8, 512))
def test_every_row_is_in_one_micro_batch_of_one_process(rows, world, micro, length):
    numbers = np.arange(100, 100 + rows)
    if rows < world:
        with pytest.raises(RecipeError, match="Take fewer processes, or a larger batch"):
            RankSplit(0, world, micro).micro_batches(numbers, length)
        return
    found = [RankSplit(rank, world, micro).micro_batches(numbers, length) for rank in range(world)]
    assert np.concatenate([part for parts in found for part in parts]).tolist() == numbers.tolist()
    assert len({len(parts) for parts in found}) == 1, "a process with fewer micro-batches would wait for ever"
    assert all(len(part) for parts in found for part in parts)
    most = max(len(part) for parts in found for part in parts)
    assert most <= max(micro // length, 1) + (rows % world > 0), "one row more where rows do not divide"


def test_a_micro_batch_holds_at_most_so_many_tokens():
    shares = RankSplit(microbatch_tokens=4096).micro_batches(np.arange(256), 128)
    assert [len(part) for part in shares] == [32] * 8
    assert [len(part) for part in RankSplit(microbatch_tokens=1).micro_batches(np.arange(3), 128)] == [1, 1, 1]
    assert [len(part) for part in RankSplit().micro_batches(np.arange(3), 128)] == [3]


@pytest.fixture(scope="module")
def lessons():
    return RecipeBatches.of(recipe((0.9, 0.1)), corpus(), seed=5, heldout_fraction=0.1)


@pytest.mark.parametrize(
    ("share", "stage"), [(0.0, 0), (0.899999, 0), (0.9, 1), (9 / 10, 1), (0.95, 1), (1.0, 1), (1.7, 1)]
)
def test_a_stage_begins_exactly_at_its_share(lessons, share, stage):
    assert lessons.stage_at(share) == stage


@pytest.mark.parametrize("total", [10, 20, 30, 70, 1000, 1_000_000])
def test_the_border_is_the_same_step_however_the_share_is_rounded(lessons, total):
    border = total * 9 // 10
    assert [lessons.stage_at(step / total) for step in (border - 1, border)] == [0, 1]


def test_three_stages_of_a_third_meet_where_they_should():
    found = RecipeBatches.of(recipe((1 / 3, 1 / 3, 1 / 3)), corpus(), seed=5, heldout_fraction=0.1)
    assert [found.stage_at(step / 9) for step in range(10)] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]


def test_a_lesson_is_a_function_of_its_moment(lessons):
    again = RecipeBatches.of(recipe((0.9, 0.1)), corpus(), seed=5, heldout_fraction=0.1)
    ids = [one.batch(RunPosition(7, 0.5), RankSplit()).instances[0].inputs.ids for one in (lessons, lessons, again)]
    assert np.array_equal(ids[0], ids[1])
    assert np.array_equal(ids[0], ids[2])
    assert not np.array_equal(ids[0], lessons.batch(RunPosition(8, 0.5), RankSplit()).instances[0].inputs.ids)
    late = lessons.batch(RunPosition(8, 0.95), RankSplit())
    assert (late.max_length, late.num_rows, late.task_name) == (24, 4, "cloze")


def test_a_trial_has_the_same_rows_and_masks_for_every_seed_and_at_any_time(lessons):
    other = RecipeBatches.of(recipe((0.9, 0.1)), corpus(), seed=6, heldout_fraction=0.1)
    first, again, theirs = lessons.eval_batches(), lessons.eval_batches(), other.eval_batches()
    for one, two, three in zip(first, again, theirs, strict=True):
        for instance, *same in zip(one.instances, two.instances, three.instances, strict=True):
            for twin in same:
                assert np.array_equal(instance.inputs.ids, twin.inputs.ids)
                assert np.array_equal(instance.targets[0].positions, twin.targets[0].positions)
    ids = (made.batch(RunPosition(0, 0.0), RankSplit()).instances[0].inputs.ids for made in (lessons, other))
    assert not np.array_equal(*ids)


def test_no_row_of_a_trial_is_ever_learned_from(lessons):
    learn, judge = (feed.corpus for feed in (lessons.task_batches[0, 0], lessons.heldout[0]))
    assert learn.manifest.counts.documents + judge.manifest.counts.documents == 40
    assert not any(np.may_share_memory(one.ids, other.ids) for one in learn.shards for other in judge.shards)


def test_counts_of_a_lesson(lessons):
    lesson = lessons.batch(RunPosition(0, 0.0), RankSplit(microbatch_tokens=32))
    assert len(lesson.instances) == 2
    assert lesson.num_rows == 4
    assert lesson.num_tokens == sum(len(one.inputs.ids) for one in lesson.instances)
    assert lesson.num_predictions() == (lesson.num_masked, 4)


def test_a_crew_larger_than_a_batch_is_refused_before_the_first_step(lessons):
    lessons.check(RankSplit(0, 4))
    with pytest.raises(RecipeError, match="5 processes share the rows of a step, but there are only 4"):
        lessons.check(RankSplit(0, 5))


def test_what_has_no_head_is_refused():
    assert require_trainable([MLM(), SBO(), NSP, SOP]) == (MLM(), SBO(), NSP, SOP)
    with pytest.raises(RecipeError, match="PLM has no head yet, so no network can learn it"):
        require_trainable([MLM(), PLM()])


def test_a_task_that_shows_similar_words_needs_a_table_of_them():
    with pytest.raises(CorpusError, match=r"shows similar words, but .* has no table of them"):
        RecipeBatches.of(member("macbert"), corpus(), seed=0)


def test_the_loss_of_a_guesser_that_knows_frequencies_only():
    assert unigram_entropy(corpus()) == pytest.approx(np.log(59), abs=0.01)  # 59 ids, all equally frequent
