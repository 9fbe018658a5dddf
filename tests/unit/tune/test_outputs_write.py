"""A text for each text: what is read, how it is laid out, and that a network learns to write it, in both versions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from little_task import little_model, little_tokenizer, write_lines

from unmask.codec import decode, encode
from unmask.errors import InputError
from unmask.nets.batch import collate
from unmask.nets.layout import Sight
from unmask.nets.trunk import Trunk
from unmask.records import Continue, Instance, Rewrite
from unmask.tune.beside import behind
from unmask.tune.encode import Room
from unmask.tune.fields import Choice
from unmask.tune.manner import Manner, Version
from unmask.tune.output import Output
from unmask.tune.outputs.write import Write
from unmask.tune.sheet import Sheet
from unmask.tune.start import Origin, new_learner
from unmask.tune.texts import TextQuestion, read
from unmask.use.beam_choice import Beam

TOKENIZER = little_tokenizer()
PAIRS = {
    "今天天气真好": "we liked it",
    "又脏又吵": "we hated it a lot",
    "再也不来了": "a lot",
    "很好 1": "2 3",
    "很好 2": "3 4",
}
SHEET = Sheet("pairs", tuple(TextQuestion(*pair) for pair in PAIRS.items()), tuple(map(str, range(5))))
ROOM = Room(24)
every_version = pytest.mark.parametrize("version", Version)


def ids_of(text: str) -> list[int]:
    ids: list[int] = TOKENIZER.pipeline.encode(text, add_special_tokens=False).ids
    return ids


@pytest.mark.parametrize(
    ("row", "said", "fields"),
    [
        ({"src": "a", "tgt": "b", "book": "c"}, Choice(), ("src", "tgt")),
        ({"text": "a", "title": "b", "topics": ["c"]}, Choice(), ("text", "title")),
        ({"Source": "a", "Target": "b"}, Choice(), ("Source", "Target")),
        ({"en": "a", "zh": "b"}, Choice(), ("en", "zh")),
        ({"en": "a", "zh": "b"}, Choice(("zh",), "en"), ("zh", "en")),
        ({"en": "a", "zh": "b"}, Choice(("zh",)), ("zh", "en")),
        ({"one": "a", "two": "b"}, Choice(("one",), "two"), ("one", "two")),
    ],
)
def test_fields_are_found_by_their_usual_names_or_as_they_were_named(tmp_path: Path, row, said, fields):
    sheet, choice = read(write_lines(tmp_path / "task.jsonl", [row]), said)
    assert ((*choice.texts, choice.label)) == fields
    assert sheet.questions == (TextQuestion(row[fields[0]], row[fields[1]]),)


@pytest.mark.parametrize(
    ("rows", "said", "sentence"),
    [
        ([{"src": "a", "tgt": "b"}, {"src": "a"}], Choice(), "task.jsonl:2: there is no field 'tgt'"),
        ([{"src": "a", "tgt": "b"}, {"src": "a", "tgt": " "}], Choice(), "task.jsonl:2: the text to be written .'tgt'"),
        ([{"src": "a", "tgt": 3}], Choice(), "task.jsonl:1: the field 'tgt' should hold text and holds a number"),
        ([{"one": "a", "two": "b"}], Choice(), "it has 'one', 'two'. Name them: --fields SOURCE --label TEXT"),
        ([{"src": "a", "tgt": "b"}], Choice(("source",)), "there is no field 'source'; it has 'src', 'tgt'"),
        ([{"src": "a", "tgt": "b", "x": "c"}], Choice(("src", "x")), "--fields names one source, found src, x"),
    ],
)
def test_rows_that_cannot_be_used_are_refused_with_their_line(tmp_path: Path, rows, said, sentence):
    with pytest.raises(InputError, match=sentence):
        read(write_lines(tmp_path / "task.jsonl", rows), said)


def test_without_truths_only_the_source_is_read(tmp_path: Path):
    sheet, _ = read(write_lines(tmp_path / "task.jsonl", [{"src": "a"}]), Choice(("src",), "tgt"), truths=False)
    assert sheet.questions == (TextQuestion("a"),)


def test_beside_a_source_stands_the_text_with_its_end():
    vocab = TOKENIZER.vocab
    exercise = Write(Manner(Version.BESIDE, Beam(most=8))).lay_out(SHEET, TOKENIZER, ROOM)
    instance = exercise.at(np.array([1, 0]))
    (target,) = instance.targets
    assert isinstance(target, Rewrite)
    texts = [ids_of("we hated it a lot"), ids_of("we liked it")]
    assert target.ids.tolist() == [*texts[0], vocab.sep, *texts[1], vocab.sep]
    assert target.rows.tolist() == [0, len(texts[0]) + 1, len(target.ids)]
    assert target.position.tolist() == [*range(len(texts[0]) + 1), *range(len(texts[1]) + 1)]
    assert instance.inputs.ids.tolist()[: instance.inputs.rows[1]] == [vocab.cls, *ids_of("又脏又吵"), vocab.sep]
    assert not len(instance.inputs.prefix)


def test_behind_a_source_every_token_is_said_where_the_one_before_it_stands():
    vocab = TOKENIZER.vocab
    exercise = Write(Manner(Version.BEHIND, Beam(most=8))).lay_out(SHEET, TOKENIZER, ROOM)
    instance = exercise.at(np.array([1, 0]))
    inputs, (target,) = instance.inputs, instance.targets
    assert isinstance(target, Continue)
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
def test_what_is_too_long_is_cut_and_counted(version: Version):
    long = Sheet(
        "long",
        (TextQuestion("好" * 40, "很" * 40), TextQuestion("好", "很" * 40), TextQuestion("好", "很")),
        ("", "", ""),
    )
    exercise = Write(Manner(version, Beam(most=6))).lay_out(long, TOKENIZER, ROOM)
    assert exercise.rows.cut == 2
    assert exercise.rows.lengths.max() <= ROOM.length
    batch = collate(exercise.at(np.arange(3)))
    assert len(batch.answers) == 1
    answers = exercise.truth.ids
    assert exercise.truth.begin.tolist() == [0, 6, 12, 14]
    assert answers[5] == TOKENIZER.vocab.sep


def test_a_source_does_not_see_its_text_even_where_no_truth_is_asked_for():
    """A network at rest reads such rows once, to remember them; rows for another objective may stand behind them."""
    exercise = Write(Manner(Version.BEHIND, Beam(most=8))).lay_out(SHEET, TOKENIZER, ROOM)
    shown = exercise.shown(np.array([1, 0]))
    borders = collate(shown).tokens.borders
    assert borders.sight is Sight.PREFIX
    assert borders.prefix_S.tolist() == exercise.rows.prefix[[1, 0]].tolist()
    among = collate(Instance(behind(shown.inputs, exercise.truth.sources.take(np.array([2]))), ())).tokens.borders
    assert among.prefix_S.tolist() == [*borders.prefix_S.tolist(), exercise.rows.prefix[2]]


def test_rows_without_room_for_a_source_are_refused():
    with pytest.raises(InputError, match="Rows of 24 tokens leave no room for a source before a text of 24"):
        Write(Manner(Version.BEHIND, Beam(most=24))).lay_out(SHEET, TOKENIZER, ROOM)


@every_version
def test_questions_without_truths_are_laid_out_to_be_answered(version: Version):
    asked = Sheet("asked", tuple(TextQuestion(source) for source in PAIRS), SHEET.where)
    exercise = Write(Manner(version, Beam(most=8))).lay_out(asked, TOKENIZER, ROOM)
    assert exercise.at(np.arange(5)).targets == ()
    told = Write(Manner(version, Beam(most=8))).lay_out(SHEET, TOKENIZER, ROOM)
    assert exercise.rows.ids.tolist() == told.truth.sources.ids.tolist()


@every_version
def test_a_network_learns_to_write(version: Version):
    """Five texts by heart; then said again from their sources alone, greedily and with a beam."""
    trunk = Trunk(depth=2, width=32, heads=2, inner=64, dropout=0.0, attention_dropout=0.0)
    output = Write(Manner(version, Beam(most=8)))
    learner = new_learner(little_model(trunk=trunk), (output.objective,), 0, Origin.PRETRAINED)
    exercise = output.lay_out(SHEET, TOKENIZER, ROOM)
    batch = collate(exercise.at(np.arange(5)))
    moves = torch.optim.Adam(learner.parameters(), 0.005)
    for _ in range(80):
        (term,) = learner.train()(batch, (output.objective,))
        moves.zero_grad()
        (term.total / term.count).backward()
        moves.step()
    asked = Sheet("asked", tuple(TextQuestion(source) for source in PAIRS), SHEET.where)
    for beam in (Beam(most=8), Beam(3, 8, 0.6)):
        last = Write(Manner(version, beam))
        answers = last.answer(learner, asked, last.lay_out(asked, TOKENIZER, ROOM))
        assert [answer.said for answer in answers] == list(PAIRS.values())
        assert all(-1 < answer.score < 0 for answer in answers)
        assert answers[0].line()["said"] == "we liked it"


@every_version
def test_an_output_survives_json(version: Version):
    output = Write(Manner(version, Beam(4, 32, 0.6, 3), 2, 0.1))
    assert decode(encode(output), Output) == output
    assert output.objective.smoothing == 0.1
    assert "at most 32 tokens" in next(output.told(SHEET))


def test_a_wish_that_cannot_be_met_is_refused():
    with pytest.raises(InputError, match="smoothing from 0 to below 1"):
        Manner(smoothing=1.0)
