"""Walks of one sentence: every stage says what the parts did."""

from dataclasses import replace

import numpy as np
import pytest

from unmask.codec import override
from unmask.errors import InputError
from unmask.family import member, members
from unmask.records import Layer
from unmask.rules import bare_rule, rules
from unmask.walk.asked import Answers, Saying, Script
from unmask.walk.ground import Ground, marked
from unmask.walk.room import ROOMY
from unmask.walk.run import Subject, raised_rates, turns_of, walk
from unmask.walk.toy import other_document
from unmask.walk.trace import Fate

SENTENCE = "使用语言模型来预测下一个词的概率"
ENGLISH = "An unbelievable language model predicts the probability of words."
SUBJECTS = [Subject.of_rule(rule, rule.task) for rule in rules()] + [Subject.of_member(recipe) for recipe in members()]


def take(subject, text=SENTENCE, phrases=(), other="", **how):
    second = other or other_document(text)
    ground = Ground.toy([text, second])
    document = marked(text, subject.task.needs, phrases)
    return walk(subject, document, ground, marked(second, frozenset()), **how)


def of_rule(name, **changes):
    task = bare_rule(name).task
    for path, value in changes.items():
        task = override(task, path.replace("__", "."), value)
    return Subject.of_rule(bare_rule(name), task)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
@pytest.mark.parametrize("text", [SENTENCE, ENGLISH, "你好！我是小明。今天 iPhone 15 发布了。", "好吗"])
def test_every_member_and_rule_walks_any_text_and_restores_it(subject, text):
    found = take(subject, text, visits=range(3))
    assert all(draw.restored for draw in found.draws)
    assert found.row[0].fixed
    assert found.row[-1].fixed
    assert all(draw.asked for draw in found.draws)


def test_the_sentence_of_the_notes_is_cut_into_its_words_and_characters():
    found = take(of_rule("word"))
    assert found.units[0] == (Layer.WORD, ("使用", "语言", "模型", "来", "预测", "下", "一个", "词", "的", "概率"))
    assert "".join(token.text for token in found.tokens) == SENTENCE
    assert [token.word for token in found.tokens] == [0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 9, 9]
    assert [token.text for token in found.row] == ["[CLS]", *SENTENCE, "[SEP]"]


def test_whole_words_are_chosen_whole():
    for draw in take(of_rule("word"), visits=range(20)).draws:
        for span in draw.steps[0].chosen:
            assert "".join(("[CLS]", *SENTENCE)[at] for at in span.origins) in take(of_rule("word")).units[0][1]


def test_a_draw_is_an_address_of_seed_and_visit():
    subject = of_rule("token")
    twice = [take(subject, seed=3, visits=(5,)).draws[0] for _ in range(2)]
    assert twice[0].steps == twice[1].steps
    others = [take(subject, seed=seed, visits=(visit,)).draws[0].steps for seed, visit in ((3, 6), (4, 5))]
    assert twice[0].steps not in others


def test_static_masking_comes_again_after_its_copies():
    draws = take(Subject.of_member(member("bert")), visits=range(20)).draws
    assert all(draws[visit].steps == draws[visit + 10].steps for visit in range(10))
    assert draws[0].steps != draws[1].steps
    assert "copy 3 of 10" in draws[13].about
    dynamic = take(Subject.of_member(member("roberta")), visits=range(20)).draws
    assert sum(dynamic[visit].steps == dynamic[visit + 10].steps for visit in range(10)) < 3


@pytest.mark.parametrize("name", ["ngram", "ngram-inverse", "span", "similar", "t5"])
def test_a_short_text_gets_room_and_says_so(name):
    roomy, exact = take(of_rule(name), visits=range(10)), take(of_rule(name), visits=range(10), exact=True)
    assert "15 %" in roomy.widened
    assert not exact.widened
    longest = [max(len(s.origins) for draw in w.draws for s in draw.steps[0].chosen) for w in (roomy, exact)]
    assert longest[0] >= 4 > longest[1]
    assert raised_rates([roomy, exact]).startswith(f"{name}: ")
    assert not raised_rates([exact])


def test_a_long_text_needs_no_room():
    found = take(of_rule("span"), SENTENCE * 10)
    assert not found.widened
    assert take(of_rule("token")).widened == ""


def test_a_rate_that_is_set_is_kept():
    found = take(of_rule("token", corrupt__select__rate="0.5"))
    assert sum(len(span.origins) for span in found.draws[0].steps[0].chosen) == 9
    assert "50 %" in found.where


def test_phrases_are_chosen_first_and_whole():
    found = take(of_rule("phrase"), phrases=["语言模型"], visits=range(8))
    assert f"{100 * ROOMY:.0f} %" in found.where
    assert all((3, 4, 5, 6) in [span.origins for span in draw.steps[0].chosen] for draw in found.draws)
    assert not found.notes
    assert "mark one with --phrase" in take(of_rule("phrase")).notes[0]


def test_a_phrase_must_stand_in_the_text_on_word_borders():
    with pytest.raises(InputError, match=r"'言模' cuts a word.*语言\|模型"):
        marked(SENTENCE, frozenset(), ["言模"])
    with pytest.raises(InputError, match="'机器' does not stand"):
        marked(SENTENCE, frozenset(), ["机器"])


def test_entities_are_found_by_the_segmenter_or_named_by_hand():
    found = marked("小明在北京大学读书", frozenset({Layer.ENTITY}), entities=["小明"])
    spans = found.marks[Layer.ENTITY].spans
    assert ["小明在北京大学读书"[a:b] for a, b in zip(spans.start, spans.end, strict=True)] == ["小明", "北京大学"]


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_text_is_refused(text):
    with pytest.raises(InputError, match="nothing to walk"):
        take(of_rule("token"), text, other="无关")


def test_a_text_too_short_for_a_pair_is_refused():
    with pytest.raises(InputError, match="too short to make a row of macbert"):
        take(Subject.of_member(member("macbert")), "ab")


def test_a_pair_takes_its_second_segment_from_the_other_document():
    found = take(Subject.of_member(member("bert")), other="别的文章。")
    assert "".join(token.text for token in found.row if token.segment) == "别的文章。[SEP]"
    facts = [asked.how for asked in found.draws[0].asked if isinstance(asked, Saying)]
    assert facts == ["from the first token: B comes from another document (next = 1)"]


def test_a_sample_sentence_is_called_one():
    assert take(Subject.of_member(member("bert"))).second == "B: a sample sentence; --other gives yours"
    assert take(Subject.of_member(member("roberta"))).second.startswith("behind the text: a sample")
    assert not take(Subject.of_member(member("bert")), other="别的文章。").second
    assert not take(of_rule("token")).second


def test_a_member_with_more_than_one_part_says_which_is_walked():
    bert, roberta = member("bert"), member("roberta")
    assert Subject.of_member(bert).walked == "walked here: stage 1 of 2, rows of up to 128 tokens"
    assert not Subject.of_member(roberta).walked
    stage = roberta.stages[0]
    pairs = replace(bert.stages[0].tasks[0], name="pairs")
    two = replace(stage, tasks=(*stage.tasks, pairs), shares=(0.5, 0.5))
    walked = Subject.of_member(replace(roberta, stages=(two,))).walked
    assert walked == "walked here: task 'cloze', the first of 2; --task takes another: pairs"


def test_a_member_that_folds_case_is_walked_in_lower_case():
    for name, first in (("bert", "an"), ("spanbert", "An")):
        subject = Subject.of_member(member(name))
        ground = Ground.toy([ENGLISH, other_document(ENGLISH)], subject.spelling)
        found = walk(subject, marked(ENGLISH, frozenset()), ground, marked(other_document(ENGLISH), frozenset()))
        assert found.tokens[0].text == first
        assert ("lower-case" in found.ground.about) == (name == "bert")


def test_the_answers_of_a_cloze_are_the_hidden_tokens():
    for draw in take(of_rule("token"), visits=range(10)).draws:
        (answers,) = draw.asked
        assert isinstance(answers, Answers)
        for one in answers.answers:
            assert one.says == ("[CLS]", *SENTENCE)[one.place]
            assert one.shown == draw.inputs[0][one.place]
            assert (one.fate is Fate.MASK) == (one.shown == "[MASK]")


def test_span_borders_are_named():
    found = set()
    for draw in take(of_rule("span"), visits=range(20)).draws:
        shown, said = draw.inputs[0], draw.asked[1].how
        for number, span in enumerate(draw.steps[0].chosen, start=1):
            inner = span.places[0] > 1 and span.places[-1] < len(shown) - 2
            sides = f"{shown[span.places[0] - 1]} … {shown[span.places[-1] + 1]} for span {number}"
            assert (sides in said) == inner
            found.add(inner)
    assert found == {True, False}, "a span at an end of the text has no border there"


def test_decoders_write_spans_or_everything():
    (t5,), (bart,), (mass,) = (take(of_rule(name)).draws[0].asked for name in ("t5", "bart", "mass"))
    assert isinstance(t5, Script)
    assert [one.token for one in t5.tokens if one.fate is Fate.SENTINEL] == [f"<extra_id_{n}>" for n in range(3)]
    assert "".join(one.token for one in bart.tokens) == f"[CLS]{SENTENCE}[SEP]"
    assert len(mass.tokens) == len(SENTENCE) // 2
    assert "".join(one.token for one in mass.tokens) in SENTENCE


def test_who_sees_whom():
    (everyone,) = take(of_rule("token")).streams
    assert everyone.grid.all()
    assert everyone.lines == (tuple(range(18)),)
    (past,) = take(of_rule("gpt")).streams
    assert np.array_equal(past.grid, np.tri(18, dtype=bool))
    found = take(of_rule("xlnet"))
    content, query = found.streams
    turns = turns_of(found.draws[0])
    order = sorted(turns, key=lambda place: int(turns[place]))
    assert [line[0] for line in query.lines] == order
    for number, place in enumerate(order):
        assert content.grid[place, place]
        assert not query.grid[place, place]
        assert query.grid[place, order[:number]].all()
        assert not query.grid[place, order[number:]].any()


def test_a_long_text_fills_several_rows():
    assert take(of_rule("token"), (SENTENCE + "。") * 60).rows > 1
    assert take(of_rule("token")).rows == 1
