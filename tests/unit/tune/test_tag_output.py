"""A class for each word, from files to answers: it learns, under every policy, and comes back as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from little_policy import DEEP, EVERY, TOKENIZER, named, tuned
from little_tags import long_sentence, sentences
from little_task import little_model, write_lines

from unmask.codec import decode, encode
from unmask.errors import InputError
from unmask.evaluate.scoring import floor, scores
from unmask.tune.fields import Choice
from unmask.tune.job import read_job
from unmask.tune.output import Output
from unmask.tune.outputs.tag import Tag
from unmask.tune.policies.frozen import Frozen
from unmask.tune.policy import Full
from unmask.tune.saved import Root, load_tuned, save_answers, save_tuned
from unmask.tune.tagging import TagQuestion
from unmask.tune.tagging_files import read
from unmask.tune.tagging_scheme import Scheme, stretches
from unmask.tune.tuning import Settings, Tuning
from unmask.tune.wish import NO_WISH, Wish

FULL = Full()
SETTINGS = Settings(epochs=10, batch=8, length=24, rate=5e-3)


def tuning(folder, policy=FULL, wish=NO_WISH, settings=SETTINGS, dev=()) -> Tuning:
    learned = write_lines(folder / "train.jsonl", [*sentences(60), *map(long_sentence, range(7, 19))])
    judged = write_lines(folder / "dev.jsonl", [*sentences(20, first=100), *dev])
    return Tuning(read_job(learned, judged, wish), little_model(trunk=DEEP), TOKENIZER, settings, "little", policy)


def said_by(made, done):
    answers = done.answer(made.job.judged)
    for answer, question in zip(answers, made.job.judged.questions, strict=True):
        assert len(answer.said) == len(question.words)
    return answers


@pytest.mark.parametrize("wish", [NO_WISH, Wish(legal=True), Wish(crf=True)], ids=["linear", "legal", "crf"])
def test_it_learns_and_comes_back(tmp_path, wish):
    made = tuning(tmp_path, wish=wish, dev=[long_sentence(20)])
    done = tuned(made, tmp_path / "run")
    answers = said_by(made, done)
    found = scores(made.job.output, made.job.judged, answers)
    assert next(iter(found)) == "entity_f1"
    assert found["entity_f1"] > 0.9
    assert found["accuracy"] > 0.95
    assert found["accuracy"] > floor(made.job.output, made.job.learned, made.job.judged)["accuracy"] > 0

    save_answers(tmp_path / "run", made.job.judged, answers)
    save_tuned(done, tmp_path / "run", Root("little"), {})
    back = load_tuned(tmp_path / "run", lambda root: pytest.fail("the whole network was saved"))
    assert back.output == made.job.output
    assert said_by(made, back) == answers
    line = json.loads((tmp_path / "run/predictions.jsonl").read_text().splitlines()[2])
    assert line.keys() == {"words", "tags", "said", "entities"}
    assert line["entities"][0].keys() == {"start", "end", "type", "text"}


@pytest.mark.parametrize("crf", [False, True], ids=["linear", "crf"])
@pytest.mark.parametrize("policy", EVERY, ids=named)
def test_it_works_under_every_policy(tmp_path, policy, crf):
    made = tuning(tmp_path, policy, Wish(crf=crf), replace(SETTINGS, epochs=1), [long_sentence(20)])
    said_by(made, tuned(made, tmp_path / "run"))


def test_what_is_remembered_changes_no_answer(tmp_path):
    """Windows, too, are read once."""
    kept, again = (tuning(tmp_path, Frozen(cache=one), dev=[long_sentence(20)]) for one in (True, False))
    said = said_by(kept, tuned(kept, tmp_path / "kept"))
    assert said == said_by(again, tuned(again, tmp_path / "again"))


def test_every_word_is_learned_once(tmp_path):
    made = tuning(tmp_path, dev=[long_sentence(20)])
    course = made.lay_out()
    asked = sum(course.objective.asked(lesson.instances[0]) for lesson in course.trial())
    assert asked == sum(len(question.words) for question in made.job.judged.questions)
    everything = course.judged.at(np.arange(len(course.judged)))
    assert everything.targets[0].value.tolist() == made.job.output.numbers(made.job.judged).tolist()


def test_a_crf_and_legal_tags_keep_the_rules_before_anything_is_learned(tmp_path):
    for wish in (Wish(crf=True), Wish(legal=True)):
        made = tuning(tmp_path, wish=wish, settings=replace(SETTINGS, epochs=0.1, rate=1e-9), dev=[long_sentence(9)])
        for answer in said_by(made, tuned(made, tmp_path / f"run{wish.crf}")):
            starts = {one.start for one in stretches(answer.said)}
            assert all(answer.said[start][0] == "B" for start in starts)


def test_entities_have_their_place_and_text(tmp_path):
    output = Tag(("O", "B-PER", "I-PER"), Scheme.BIO)
    words = TagQuestion(("Li", "Bai", "met", "杜", "甫"))
    answer = output._answer(words, ("B-PER", "I-PER", "O", "B-PER", "I-PER"))
    assert answer.line()["entities"] == [
        {"start": 0, "end": 2, "type": "PER", "text": "Li Bai"},
        {"start": 3, "end": 5, "type": "PER", "text": "杜甫"},
    ]
    running = TagQuestion(("Li", "Bai"), (), (4, 8))
    assert output._answer(running, ("B-PER", "I-PER")).line()["entities"][0]["end"] == 11
    assert Tag(("NN", "VB"), Scheme.FREE)._answer(words, ("NN",) * 5).line() == {"said": ("NN",) * 5}


def learned_from(tmp_path, *rows: str) -> tuple[Tag, list[str]]:
    objects = [{"tokens": [f"w{n}" for n, _ in enumerate(row.split())], "tags": row.split()} for row in rows]
    sheet, _ = read(write_lines(tmp_path / "t.jsonl", objects))
    output = Tag.learn(sheet)
    return output, list(output.told(sheet))


def test_the_user_is_told_what_the_tags_are(tmp_path):
    output, told = learned_from(tmp_path, "B-PER I-PER O", "B-LOC O O", "B-PER", "B-PER", "B-PER", "O I-PER")
    assert told == [
        "11 words with BIO tags of 2 types: LOC, PER",
        "I-LOC: not among them, but added, as other tags of the same type are",
        f"note: sentences that break the rules of BIO: 1, the first at {tmp_path / 't.jsonl'}:6; they are learned as "
        "they stand",
    ]
    assert decode(encode(output), Output) == output
    _, told = learned_from(tmp_path, "NN VB", "DT NN")
    assert told == ["4 words with 3 free tags: DT, NN, VB"]


def test_a_tag_of_a_known_type_may_be_new_and_another_may_not(tmp_path):
    train = write_lines(tmp_path / "train.jsonl", [{"tokens": ["a", "b"], "tags": ["B-PER", "O"]}])
    fine = write_lines(tmp_path / "fine.jsonl", [{"tokens": ["a", "b"], "tags": ["B-PER", "I-PER"]}])
    assert read_job(train, fine).output.labels == ("O", "B-PER", "I-PER")
    odd = write_lines(tmp_path / "odd.jsonl", [{"tokens": ["a"], "tags": ["O"]}, {"tokens": ["b"], "tags": ["B-LOC"]}])
    with pytest.raises(InputError, match=r"odd\.jsonl:2: word 1, 'b', has the tag 'B-LOC', which the training file"):
        read_job(train, odd)


def test_one_tag_is_no_choice(tmp_path):
    with pytest.raises(InputError, match="all words have the tag 'O'"):
        learned_from(tmp_path, "O O", "O")


def test_the_label_can_be_chosen(tmp_path):
    rows = [{**row, "pos": ["X" if tag == "O" else "N" for tag in row["tags"]]} for row in sentences(12)]
    job = read_job(write_lines(tmp_path / "t.jsonl", rows), None, Wish(choice=Choice((), "pos")))
    assert job.output == Tag(("N", "X"), Scheme.FREE)
