"""A class for each word, from files to answers: it learns, under every policy, and comes back as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from little_policy import DEEP, EVERY, TOKENIZER, named, tuned
from little_tags import long_sentence, sentences
from little_task import little_model, write_lines

from unmask.core.codec import decode, encode
from unmask.core.errors import InputError
from unmask.evaluation.by_task import scores, trivial_baseline
from unmask.finetuning.artifact import BaseModelRef, load_finetuned, save_finetuned, save_predictions
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.data.tagging.files import read_tagging
from unmask.finetuning.data.tagging.schemes import TagScheme, entities
from unmask.finetuning.data.tagging.sentences import TaggedSentence
from unmask.finetuning.finetune import FineTune, FineTuneSettings
from unmask.finetuning.methods.frozen import FrozenEncoder
from unmask.finetuning.methods.protocol import FullFineTuning
from unmask.finetuning.task_data import load_task_data
from unmask.finetuning.task_options import DEFAULT_TASK_OPTIONS, TaskOptions
from unmask.finetuning.tasks.protocol import TaskDefinition
from unmask.finetuning.tasks.tagging import TaggingTask

FULL = FullFineTuning()
SETTINGS = FineTuneSettings(epochs=10, batch_size=8, max_length=24, lr=5e-3)


def tuning(folder, policy=FULL, wish=DEFAULT_TASK_OPTIONS, settings=SETTINGS, dev=()) -> FineTune:
    learned = write_lines(folder / "train.jsonl", [*sentences(60), *map(long_sentence, range(7, 19))])
    judged = write_lines(folder / "dev.jsonl", [*sentences(20, first=100), *dev])
    return FineTune(
        load_task_data(learned, judged, wish), little_model(trunk=DEEP), TOKENIZER, settings, "little", policy
    )


def said_by(made, done):
    answers = done.predict(made.data.dev)
    for answer, question in zip(answers, made.data.dev.examples, strict=True):
        assert len(answer.prediction) == len(question.words)
    return answers


@pytest.mark.parametrize(
    "wish",
    [DEFAULT_TASK_OPTIONS, TaskOptions(constrained_tags=True), TaskOptions(crf=True)],
    ids=["linear", "legal", "crf"],
)
def test_it_learns_and_comes_back(tmp_path, wish):
    made = tuning(tmp_path, wish=wish, dev=[long_sentence(20)])
    done = tuned(made, tmp_path / "run")
    answers = said_by(made, done)
    found = scores(made.data.task, made.data.dev, answers)
    assert next(iter(found)) == "entity_f1"
    assert found["entity_f1"] > 0.9
    assert found["accuracy"] > 0.95
    assert found["accuracy"] > trivial_baseline(made.data.task, made.data.train, made.data.dev)["accuracy"] > 0

    save_predictions(tmp_path / "run", made.data.dev, answers)
    save_finetuned(done, tmp_path / "run", BaseModelRef("little"), {})
    back = load_finetuned(tmp_path / "run", lambda root: pytest.fail("the whole network was saved"))
    assert back.task == made.data.task
    assert said_by(made, back) == answers
    line = json.loads((tmp_path / "run/predictions.jsonl").read_text().splitlines()[2])
    assert line.keys() == {"words", "tags", "prediction", "entities"}
    assert line["entities"][0].keys() == {"start", "end", "type", "text"}


@pytest.mark.parametrize("crf", [False, True], ids=["linear", "crf"])
@pytest.mark.parametrize("policy", EVERY, ids=named)
def test_it_works_under_every_policy(tmp_path, policy, crf):
    made = tuning(tmp_path, policy, TaskOptions(crf=crf), replace(SETTINGS, epochs=1), [long_sentence(20)])
    said_by(made, tuned(made, tmp_path / "run"))


def test_what_is_remembered_changes_no_answer(tmp_path):
    """Windows, too, are read once."""
    kept, again = (
        tuning(tmp_path, FrozenEncoder(cache_features=one), dev=[long_sentence(20)]) for one in (True, False)
    )
    said = said_by(kept, tuned(kept, tmp_path / "kept"))
    assert said == said_by(again, tuned(again, tmp_path / "again"))


def test_every_word_is_learned_once(tmp_path):
    made = tuning(tmp_path, dev=[long_sentence(20)])
    course = made.encode()
    asked = sum(course.objective.num_predictions(lesson.instances[0]) for lesson in course.eval_batches())
    assert asked == sum(len(question.words) for question in made.data.dev.examples)
    everything = course.dev.take(np.arange(len(course.dev)))
    assert everything.targets[0].value.tolist() == made.data.task.tag_indices(made.data.dev).tolist()


def test_a_crf_and_legal_tags_keep_the_rules_before_anything_is_learned(tmp_path):
    for wish in (TaskOptions(crf=True), TaskOptions(constrained_tags=True)):
        made = tuning(tmp_path, wish=wish, settings=replace(SETTINGS, epochs=0.1, lr=1e-9), dev=[long_sentence(9)])
        for answer in said_by(made, tuned(made, tmp_path / f"run{wish.crf}")):
            starts = {one.start for one in entities(answer.prediction)}
            assert all(answer.prediction[start][0] == "B" for start in starts)


def test_entities_have_their_place_and_text(tmp_path):
    output = TaggingTask(("O", "B-PER", "I-PER"), TagScheme.BIO)
    words = TaggedSentence(("Li", "Bai", "met", "杜", "甫"))
    answer = output._to_prediction(words, ("B-PER", "I-PER", "O", "B-PER", "I-PER"))
    assert answer.to_json()["entities"] == [
        {"start": 0, "end": 2, "type": "PER", "text": "Li Bai"},
        {"start": 3, "end": 5, "type": "PER", "text": "杜甫"},
    ]
    running = TaggedSentence(("Li", "Bai"), (), (4, 8))
    assert output._to_prediction(running, ("B-PER", "I-PER")).to_json()["entities"][0]["end"] == 11
    assert TaggingTask(("NN", "VB"), TagScheme.FREE)._to_prediction(words, ("NN",) * 5).to_json() == {
        "prediction": ("NN",) * 5
    }


def learned_from(tmp_path, *rows: str) -> tuple[TaggingTask, list[str]]:
    objects = [{"tokens": [f"w{n}" for n, _ in enumerate(row.split())], "tags": row.split()} for row in rows]
    sheet, _ = read_tagging(write_lines(tmp_path / "t.jsonl", objects))
    output = TaggingTask.from_examples(sheet)
    return output, list(output.notes(sheet))


def test_the_user_is_told_what_the_tags_are(tmp_path):
    output, told = learned_from(tmp_path, "B-PER I-PER O", "B-LOC O O", "B-PER", "B-PER", "B-PER", "O I-PER")
    assert told == [
        "11 words with BIO tags of 2 types: LOC, PER",
        "I-LOC: not in the file, but added for their entity type",
        f"note: sentences that break the rules of BIO: 1, the first at {tmp_path / 't.jsonl'}:6; they are trained on "
        "as they are",
    ]
    assert decode(encode(output), TaskDefinition) == output
    _, told = learned_from(tmp_path, "NN VB", "DT NN")
    assert told == ["4 words with 3 free tags: DT, NN, VB"]


def test_a_tag_of_a_known_type_may_be_new_and_another_may_not(tmp_path):
    train = write_lines(tmp_path / "train.jsonl", [{"tokens": ["a", "b"], "tags": ["B-PER", "O"]}])
    fine = write_lines(tmp_path / "fine.jsonl", [{"tokens": ["a", "b"], "tags": ["B-PER", "I-PER"]}])
    assert load_task_data(train, fine).task.labels == ("O", "B-PER", "I-PER")
    odd = write_lines(tmp_path / "odd.jsonl", [{"tokens": ["a"], "tags": ["O"]}, {"tokens": ["b"], "tags": ["B-LOC"]}])
    with pytest.raises(InputError, match=r"odd\.jsonl:2: word 1, 'b', has the tag 'B-LOC', which the training file"):
        load_task_data(train, odd)


def test_one_tag_is_no_choice(tmp_path):
    with pytest.raises(InputError, match="all words have the tag 'O'"):
        learned_from(tmp_path, "O O", "O")


def test_the_label_can_be_chosen(tmp_path):
    rows = [{**row, "pos": ["X" if tag == "O" else "N" for tag in row["tags"]]} for row in sentences(12)]
    job = load_task_data(write_lines(tmp_path / "t.jsonl", rows), None, TaskOptions(columns=ColumnChoice((), "pos")))
    assert job.task == TaggingTask(("N", "X"), TagScheme.FREE)
