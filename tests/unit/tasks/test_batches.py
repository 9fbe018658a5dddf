"""Rows for training: any step, any part of it, always the same."""

import sys
from pathlib import Path

import numpy as np
import pytest

from unmask.core.errors import RecipeError
from unmask.core.records import Cloze, UnitKind
from unmask.data.input_formats.row_plan import StaticMasking
from unmask.members import member
from unmask.tasks.batches import TaskBatches, to_padded

sys.path.append(str(Path(__file__).parent / "examples"))
from small_corpus import VOCAB, make_corpus

CORPUS = make_corpus([[9, 7, 12, 8, 11]] * 60, shards=2)
FEED = TaskBatches.for_task(member("wwm").tasks[0], CORPUS, 64, StaticMasking(10), seed=3)


def test_a_step_does_not_need_the_steps_before_it():
    whole = FEED.batch_at(np.arange(40, 48))
    again = FEED(step=5, rows=8)
    assert (whole.inputs.ids == again.inputs.ids).all()
    assert not np.array_equal(FEED(step=6, rows=8).inputs.ids, again.inputs.ids)


def test_processes_share_a_step_without_talking():
    whole = FEED(step=2, rows=6)
    parts = [FEED(step=2, rows=6, part=slice(rank, None, 2)) for rank in (0, 1)]
    for rank, part in enumerate(parts):
        for i, row in enumerate(range(rank, 6, 2)):
            ours = part.inputs.ids[part.inputs.rows[i] : part.inputs.rows[i + 1]]
            theirs = whole.inputs.ids[whole.inputs.rows[row] : whole.inputs.rows[row + 1]]
            assert (ours == theirs).all()


def test_another_seed_is_another_order_and_other_masks():
    other = TaskBatches.for_task(FEED.task, CORPUS, 64, StaticMasking(10), seed=4)
    assert not np.array_equal(other(0, 8).inputs.ids, FEED(0, 8).inputs.ids)


def test_padded_arrays_hold_the_same_rows_and_answers():
    instance = FEED(0, 8)
    arrays = to_padded(instance, VOCAB.pad)
    assert arrays["input_ids"].shape == arrays["labels"].shape == (8, np.diff(instance.inputs.rows).max())
    real = arrays["attention_mask"] == 1
    assert (arrays["input_ids"][real] == instance.inputs.ids).all()
    assert (arrays["input_ids"][~real] == VOCAB.pad).all()
    cloze = instance.targets[0]
    assert isinstance(cloze, Cloze)
    assert (arrays["labels"][real][cloze.positions] == cloze.answers).all()
    assert (arrays["labels"] != -100).sum() == len(cloze.positions)
    assert len(arrays["next"]) == 8


def test_a_corpus_without_words_is_refused():
    from dataclasses import replace

    bare = replace(CORPUS, manifest=replace(CORPUS.manifest, layers=(UnitKind.SENTENCE,)))
    with pytest.raises(RecipeError, match="wwm reads"):
        TaskBatches.of(member("wwm"), bare, seed=0)
