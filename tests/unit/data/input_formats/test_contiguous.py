"""Streams: read in order, row b of a step continuing row b of the step before, whatever step is asked for."""

from dataclasses import replace
from itertools import pairwise

import pytest
from small_corpus import TEXT, make_corpus

from unmask.core.errors import RecipeError
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.input_formats.contiguous import ContiguousStreams
from unmask.data.input_formats.row_plan import DynamicMasking
from unmask.tasks.batches import TaskBatches
from unmask.tasks.presets import preset
from unmask.tasks.recipe import Stage

STREAMS, LENGTH = 3, 10


def stream_task():
    return replace(preset("gpt"), name="streams", examples=ContiguousStreams(STREAMS), corruption=NoCorruption())


def steps(count):
    corpus = make_corpus([[9, 7, 12, 8, 11]] * 8, shards=2)
    batches = TaskBatches.for_task(stream_task(), corpus, LENGTH, DynamicMasking(), seed=1)
    return len(batches.plan) // STREAMS, [batches(step, STREAMS) for step in range(count)]


def test_row_b_of_a_step_continues_row_b_of_the_step_before():
    length, found = steps(6)
    for before, after in pairwise(found):
        last, first = before.inputs.ids[before.inputs.rows[1:] - 1], after.inputs.ids[after.inputs.rows[:-1]]
        assert (first == last + 1).all()  # tokens of this corpus are numbered
        assert after.inputs.continues_previous.all()
    assert length > 6


def test_an_epoch_begins_with_rows_that_continue_nothing():
    length, found = steps(100)
    assert not found[0].inputs.continues_previous.any()
    assert not found[length].inputs.continues_previous.any()
    assert (found[length].inputs.ids == found[0].inputs.ids).all()
    assert found[length - 1].inputs.continues_previous.all()
    assert found[0].inputs.ids[0] == TEXT


def test_a_stage_has_a_row_of_each_stream_in_a_step():
    other = replace(preset("gpt"), name="other")
    Stage(tasks=(stream_task(),), max_length=LENGTH, batch_size=STREAMS)
    with pytest.raises(RecipeError, match="a row of each stream"):
        Stage(tasks=(stream_task(),), max_length=LENGTH, batch_size=STREAMS + 1)
    with pytest.raises(RecipeError, match="this task alone"):
        Stage(tasks=(stream_task(), other), max_length=LENGTH, batch_size=STREAMS, task_weights=(0.5, 0.5))


def test_held_out_text_has_as_few_streams_as_it_must():
    corpus = make_corpus([[9, 7, 12]] * 2)
    made = ContiguousStreams(32).for_evaluation(corpus, LENGTH)
    assert made.num_streams == 1
    assert len(made.plan(corpus, LENGTH, None)) == corpus.manifest.counts.tokens // LENGTH


def test_rows_of_other_formats_continue_nothing():
    assert preset("gpt").examples.num_streams == 0
