"""A text for each text: what is read, how it is laid out, and that a network learns to write it, in both versions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from little_task import little_model, little_tokenizer, write_lines

from unmask.config.attention_pattern import PREFIX_LM
from unmask.config.inference import BeamSearch, DecoderKind, GenerationConfig
from unmask.config.network import TransformerConfig
from unmask.core.codec import decode, encode
from unmask.core.errors import InputError
from unmask.core.records import ContinuationTarget, DecoderTarget, InputsAndTargets
from unmask.finetuning.auxiliary_lm import concat_inputs
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.dataset import ExampleSet
from unmask.finetuning.data.encode import LengthLimits
from unmask.finetuning.data.seq2seq import Seq2SeqExample, read_seq2seq
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.tasks.generation import GenerationTask
from unmask.finetuning.tasks.protocol import TaskDefinition
from unmask.nets.batch.batch import collate
from unmask.nets.batch.packed_sequences import MaskKind

TOKENIZER = little_tokenizer()
PAIRS = {
    "今天天气真好": "we liked it",
    "又脏又吵": "we hated it a lot",
    "再也不来了": "a lot",
    "很好 1": "2 3",
    "很好 2": "3 4",
}
SHEET = ExampleSet("pairs", tuple(Seq2SeqExample(*pair) for pair in PAIRS.items()), tuple(map(str, range(5))))
ROOM = LengthLimits(24)
every_version = pytest.mark.parametrize("version", DecoderKind)


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER.pipeline.encode(text, add_special_tokens=False).ids
    return ids


@pytest.mark.parametrize(
    ("row", "said", "fields"),
    [
        ({"src": "a", "tgt": "b", "book": "c"}, ColumnChoice(), ("src", "tgt")),
        ({"text": "a", "title": "b", "topics": ["c"]}, ColumnChoice(), ("text", "title")),
        ({"Source": "a", "Target": "b"}, ColumnChoice(), ("Source", "Target")),
        ({"en": "a", "zh": "b"}, ColumnChoice(), ("en", "zh")),
        ({"en": "a", "zh": "b"}, ColumnChoice(("zh",), "en"), ("zh", "en")),
        ({"en": "a", "zh": "b"}, ColumnChoice(("zh",)), ("zh", "en")),
        ({"one": "a", "two": "b"}, ColumnChoice(("one",), "two"), ("one", "two")),
    ],
)
def test_fields_are_found_by_their_usual_names_or_as_they_were_named(tmp_path: Path, row, said, fields):
    sheet, choice = read_seq2seq(write_lines(tmp_path / "task.jsonl", [row]), said)
    assert ((*choice.texts, choice.label)) == fields
    assert sheet.examples == (Seq2SeqExample(row[fields[0]], row[fields[1]]),)


@pytest.mark.parametrize(
    ("rows", "said", "sentence"),
    [
        ([{"src": "a", "tgt": "b"}, {"src": "a"}], ColumnChoice(), "task.jsonl:2: there is no column 'tgt'"),
        (
            [{"src": "a", "tgt": "b"}, {"src": "a", "tgt": " "}],
            ColumnChoice(),
            "task.jsonl:2: the target text .'tgt'",
        ),
        ([{"src": "a", "tgt": 3}], ColumnChoice(), "task.jsonl:1: the column 'tgt' should hold text"),
        ([{"one": "a", "two": "b"}], ColumnChoice(), "it has 'one', 'two'. Name them: --text-columns"),
        ([{"src": "a", "tgt": "b"}], ColumnChoice(("source",)), "there is no column 'source'; it has 'src', 'tgt'"),
        ([{"src": "a", "tgt": "b", "x": "c"}], ColumnChoice(("src", "x")), "--text-columns names one source"),
    ],
)
def test_rows_that_cannot_be_used_are_refused_with_their_line(tmp_path: Path, rows, said, sentence):
    with pytest.raises(InputError, match=sentence):
        read_seq2seq(write_lines(tmp_path / "task.jsonl", rows), said)


def test_without_truths_only_the_source_is_read(tmp_path: Path):
    sheet, _ = read_seq2seq(
        write_lines(tmp_path / "task.jsonl", [{"src": "a"}]), ColumnChoice(("src",), "tgt"), truths=False
    )
    assert sheet.examples == (Seq2SeqExample("a"),)


def test_beside_a_source_stands_the_text_with_its_end():
    vocab = TOKENIZER.vocab
    exercise = GenerationTask(GenerationConfig(DecoderKind.NEW_DECODER, BeamSearch(max_new_tokens=8))).encode(
        SHEET, TOKENIZER, ROOM
    )
    instance = exercise.take(np.array([1, 0]))
    (target,) = instance.targets
    assert isinstance(target, DecoderTarget)
    texts = [ids_of("we hated it a lot"), ids_of("we liked it")]
    assert target.ids.tolist() == [*texts[0], vocab.sep, *texts[1], vocab.sep]
    assert target.rows.tolist() == [0, len(texts[0]) + 1, len(target.ids)]
    assert target.position.tolist() == [*range(len(texts[0]) + 1), *range(len(texts[1]) + 1)]
    assert instance.inputs.ids.tolist()[: instance.inputs.rows[1]] == [vocab.cls, *ids_of("又脏又吵"), vocab.sep]
    assert not len(instance.inputs.prefix)


def test_behind_a_source_every_token_is_said_where_the_one_before_it_stands():
    vocab = TOKENIZER.vocab
    exercise = GenerationTask(GenerationConfig(DecoderKind.PREFIX_LM, BeamSearch(max_new_tokens=8))).encode(
        SHEET, TOKENIZER, ROOM
    )
    instance = exercise.take(np.array([1, 0]))
    inputs, (target,) = instance.inputs, instance.targets
    assert isinstance(target, ContinuationTarget)
    head, text = [vocab.cls, *ids_of("又脏又吵"), vocab.sep], ids_of("we hated it a lot")
    assert inputs.ids.tolist()[: inputs.rows[1]] == head + text
    assert inputs.segment.tolist()[: inputs.rows[1]] == [0] * len(head) + [1] * len(text)
    assert inputs.prefix[0] == len(head)
    first = target.positions < inputs.rows[1]
    assert target.answers[first].tolist() == [*text, vocab.sep]
    assert inputs.ids[target.positions[first]].tolist() == [vocab.sep, *text]
    assert (
        inputs.ids[target.positions[1:][np.diff(target.positions) == 1]]
        == target.answers[:-1][np.diff(target.positions) == 1]
    ).all()


@every_version
def test_what_is_too_long_is_cut_and_counted(version: DecoderKind):
    long = ExampleSet(
        "long",
        (Seq2SeqExample("好" * 40, "很" * 40), Seq2SeqExample("好", "很" * 40), Seq2SeqExample("好", "很")),
        ("", "", ""),
    )
    exercise = GenerationTask(GenerationConfig(version, BeamSearch(max_new_tokens=6))).encode(long, TOKENIZER, ROOM)
    assert exercise.rows.num_truncated == 2
    assert exercise.rows.lengths.max() <= ROOM.max_length
    batch = collate(exercise.take(np.arange(3)), attention=PREFIX_LM)
    assert len(batch.targets) == 1
    answers = exercise.targets.ids
    assert exercise.targets.begin.tolist() == [0, 6, 12, 14]
    assert answers[5] == TOKENIZER.vocab.sep


def test_a_source_does_not_see_its_text_even_where_no_truth_is_asked_for():
    """A network at rest reads such rows once, to remember them; rows for another objective may stand behind them."""
    exercise = GenerationTask(GenerationConfig(DecoderKind.PREFIX_LM, BeamSearch(max_new_tokens=8))).encode(
        SHEET, TOKENIZER, ROOM
    )
    shown = exercise.without_targets(np.array([1, 0]))
    borders = collate(shown, attention=PREFIX_LM).tokens.sequences
    assert borders.mask_kind is MaskKind.PREFIX_LM
    assert borders.prefix_lengths_S.tolist() == exercise.rows.prefix[[1, 0]].tolist()
    among = collate(
        InputsAndTargets(concat_inputs(shown.inputs, exercise.targets.sources.take(np.array([2]))), ()),
        attention=PREFIX_LM,
    ).tokens.sequences
    assert among.prefix_lengths_S.tolist() == [*borders.prefix_lengths_S.tolist(), exercise.rows.prefix[2]]


def test_rows_without_room_for_a_source_are_refused():
    with pytest.raises(InputError, match="Rows of 24 tokens leave no room for a source before a target of 24"):
        GenerationTask(GenerationConfig(DecoderKind.PREFIX_LM, BeamSearch(max_new_tokens=24))).encode(
            SHEET, TOKENIZER, ROOM
        )


@every_version
def test_questions_without_truths_are_laid_out_to_be_answered(version: DecoderKind):
    asked = ExampleSet("asked", tuple(Seq2SeqExample(source) for source in PAIRS), SHEET.source_lines)
    exercise = GenerationTask(GenerationConfig(version, BeamSearch(max_new_tokens=8))).encode(asked, TOKENIZER, ROOM)
    assert exercise.take(np.arange(5)).targets == ()
    told = GenerationTask(GenerationConfig(version, BeamSearch(max_new_tokens=8))).encode(SHEET, TOKENIZER, ROOM)
    assert exercise.rows.ids.tolist() == told.targets.sources.ids.tolist()


@every_version
def test_a_network_learns_to_write(version: DecoderKind):
    """Five texts by heart; then said again from their sources alone, greedily and with a beam."""
    trunk = TransformerConfig(depth=2, width=32, heads=2, ffn_width=64, dropout=0.0, attention_dropout=0.0)
    output = GenerationTask(GenerationConfig(version, BeamSearch(max_new_tokens=8)))
    learner = build_model(little_model(trunk=trunk), (output.objective,), 0, StartFrom.PRETRAINED)
    exercise = output.encode(SHEET, TOKENIZER, ROOM)
    batch = collate(exercise.take(np.arange(5)), attention=PREFIX_LM)
    moves = torch.optim.Adam(learner.parameters(), 0.005)
    for _ in range(80):
        (term,) = learner.train()(batch, (output.objective,))
        moves.zero_grad()
        (term.total / term.count).backward()
        moves.step()
    asked = ExampleSet("asked", tuple(Seq2SeqExample(source) for source in PAIRS), SHEET.source_lines)
    for beam in (BeamSearch(max_new_tokens=8), BeamSearch(3, 8, 0.6)):
        last = GenerationTask(GenerationConfig(version, beam))
        answers = last.predict(learner, asked, last.encode(asked, TOKENIZER, ROOM))
        assert [answer.prediction for answer in answers] == list(PAIRS.values())
        assert all(-1 < answer.score < 0 for answer in answers)
        assert answers[0].to_json()["prediction"] == "we liked it"


@every_version
def test_an_output_survives_json(version: DecoderKind):
    output = GenerationTask(GenerationConfig(version, BeamSearch(4, 32, 0.6, 3), 2, 0.1))
    assert decode(encode(output), TaskDefinition) == output
    assert output.objective.label_smoothing == 0.1
    assert "at most 32 tokens" in next(output.notes(SHEET))


def test_a_wish_that_cannot_be_met_is_refused():
    with pytest.raises(InputError, match="smoothing from 0 to below 1"):
        GenerationConfig(label_smoothing=1.0)
