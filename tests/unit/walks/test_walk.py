"""Walks of one sentence: every stage says what the parts did."""

from dataclasses import replace

import numpy as np
import pytest

from unmask.core.codec import override
from unmask.core.errors import InputError
from unmask.core.records import UnitKind
from unmask.members import member, members
from unmask.tasks.presets import find_preset, presets
from unmask.walks.context import WalkContext, annotate
from unmask.walks.describe import RAISED_RATE
from unmask.walks.targets import DecoderScript, OtherTarget, PredictedTokens
from unmask.walks.toy_vocab import other_toy_document
from unmask.walks.trace import TokenFate
from unmask.walks.walk import WalkTarget, prediction_turns, raised_rates_note, walk

SENTENCE = "使用语言模型来预测下一个词的概率"
ENGLISH = "An unbelievable language model predicts the probability of words."
SUBJECTS = [WalkTarget.of_rule(rule, rule.task) for rule in presets()] + [
    WalkTarget.of_member(recipe) for recipe in members()
]

SPECIAL_ENDS = {"gpt2": (False, True), "t5": (False, True), "transformer-xl": (False, False)}
"""Members whose rows do not both begin and end with a special token."""


def take(subject, text=SENTENCE, phrases=(), other="", **how):
    second = other or other_toy_document(text)
    ground = WalkContext.toy([text, second])
    document = annotate(text, subject.task.required_units, phrases)
    return walk(subject, document, ground, annotate(second, frozenset()), **how)


def of_rule(name, **changes):
    task = find_preset(name).task
    for path, value in changes.items():
        task = override(task, path.replace("__", "."), value)
    return WalkTarget.of_rule(find_preset(name), task)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
@pytest.mark.parametrize("text", [SENTENCE, ENGLISH, "你好！我是小明。今天 iPhone 15 发布了。", "好吗"])
def test_every_member_and_rule_walks_any_text_and_restores_it(subject, text):
    found = take(subject, text, visits=range(3))
    assert all(draw.is_restored for draw in found.corrupted_rows)
    assert [token.protected for token in found.row] == [token.text in ("[CLS]", "[SEP]") for token in found.row]
    assert (found.row[0].protected, found.row[-1].protected) == SPECIAL_ENDS.get(subject.name, (True, True))
    assert all(draw.targets for draw in found.corrupted_rows)


def test_the_sentence_of_the_notes_is_cut_into_its_words_and_characters():
    found = take(of_rule("word"))
    assert found.units[0] == (UnitKind.WORD, ("使用", "语言", "模型", "来", "预测", "下", "一个", "词", "的", "概率"))
    assert "".join(token.text for token in found.tokens) == SENTENCE
    assert [token.word for token in found.tokens] == [0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 9, 9]
    assert [token.text for token in found.row] == ["[CLS]", *SENTENCE, "[SEP]"]


def test_whole_words_are_chosen_whole():
    for draw in take(of_rule("word"), visits=range(20)).corrupted_rows:
        for span in draw.steps[0].selected_spans:
            assert "".join(("[CLS]", *SENTENCE)[at] for at in span.origins) in take(of_rule("word")).units[0][1]


def test_a_draw_is_an_address_of_seed_and_visit():
    subject = of_rule("token")
    twice = [take(subject, seed=3, visits=(5,)).corrupted_rows[0] for _ in range(2)]
    assert twice[0].steps == twice[1].steps
    others = [take(subject, seed=seed, visits=(visit,)).corrupted_rows[0].steps for seed, visit in ((3, 6), (4, 5))]
    assert twice[0].steps not in others


def test_static_masking_comes_again_after_its_copies():
    draws = take(WalkTarget.of_member(member("bert")), visits=range(20)).corrupted_rows
    assert all(draws[visit].steps == draws[visit + 10].steps for visit in range(10))
    assert draws[0].steps != draws[1].steps
    assert "copy 3 of 10" in draws[13].description
    dynamic = take(WalkTarget.of_member(member("roberta")), visits=range(20)).corrupted_rows
    assert sum(dynamic[visit].steps == dynamic[visit + 10].steps for visit in range(10)) < 3


@pytest.mark.parametrize("name", ["ngram", "ngram-inverse", "span", "similar", "t5"])
def test_a_short_text_gets_room_and_says_so(name):
    roomy, exact = take(of_rule(name), visits=range(10)), take(of_rule(name), visits=range(10), exact=True)
    assert "15 %" in roomy.raised_rate_note
    assert not exact.raised_rate_note
    longest = [
        max(len(s.origins) for draw in w.corrupted_rows for s in draw.steps[0].selected_spans) for w in (roomy, exact)
    ]
    assert longest[0] >= 4 > longest[1]
    assert raised_rates_note([roomy, exact]).startswith(f"{name}: ")
    assert not raised_rates_note([exact])


def test_a_long_text_needs_no_room():
    found = take(of_rule("span"), SENTENCE * 10)
    assert not found.raised_rate_note
    assert take(of_rule("token")).raised_rate_note == ""


def test_a_rate_that_is_set_is_kept():
    found = take(of_rule("token", corruption__select__rate="0.5"))
    assert sum(len(span.origins) for span in found.corrupted_rows[0].steps[0].selected_spans) == 9
    assert "50 %" in found.selection


def test_phrases_are_chosen_first_and_whole():
    found = take(of_rule("phrase"), phrases=["语言模型"], visits=range(8))
    assert f"{100 * RAISED_RATE:.0f} %" in found.selection
    assert all((3, 4, 5, 6) in [span.origins for span in draw.steps[0].selected_spans] for draw in found.corrupted_rows)
    assert not found.notes
    assert "mark one with --phrase" in take(of_rule("phrase")).notes[0]


def test_a_phrase_must_stand_in_the_text_on_word_borders():
    with pytest.raises(InputError, match=r"'言模' cuts a word.*语言\|模型"):
        annotate(SENTENCE, frozenset(), ["言模"])
    with pytest.raises(InputError, match="'机器' does not occur"):
        annotate(SENTENCE, frozenset(), ["机器"])


def test_entities_are_found_by_the_segmenter_or_named_by_hand():
    found = annotate("小明在北京大学读书", frozenset({UnitKind.ENTITY}), entities=["小明"])
    spans = found.char_spans[UnitKind.ENTITY].spans
    assert ["小明在北京大学读书"[a:b] for a, b in zip(spans.start, spans.end, strict=True)] == ["小明", "北京大学"]


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_text_is_refused(text):
    with pytest.raises(InputError, match="nothing to walk"):
        take(of_rule("token"), text, other="无关")


def test_a_text_too_short_for_a_pair_is_refused():
    with pytest.raises(InputError, match="too short to make a row of macbert"):
        take(WalkTarget.of_member(member("macbert")), "ab")


def test_a_pair_takes_its_second_segment_from_the_other_document():
    found = take(WalkTarget.of_member(member("bert")), other="别的文章。")
    assert "".join(token.text for token in found.row if token.segment) == "别的文章。[SEP]"
    facts = [asked.description for asked in found.corrupted_rows[0].targets if isinstance(asked, OtherTarget)]
    assert facts == ["from the first token: B comes from another document (next = 1)"]


def test_a_sample_sentence_is_called_one():
    assert take(WalkTarget.of_member(member("bert"))).other_text_note == "B: a sample sentence; --other gives yours"
    assert take(WalkTarget.of_member(member("roberta"))).other_text_note.startswith("after the text: a sample")
    assert not take(WalkTarget.of_member(member("bert")), other="别的文章。").other_text_note
    assert not take(of_rule("token")).other_text_note


def test_a_member_with_more_than_one_part_says_which_is_walked():
    bert, roberta = member("bert"), member("roberta")
    assert WalkTarget.of_member(bert).part_note == "walked here: stage 1 of 2, rows of up to 128 tokens"
    assert not WalkTarget.of_member(roberta).part_note
    stage = roberta.stages[0]
    pairs = replace(bert.stages[0].tasks[0], name="pairs")
    two = replace(stage, tasks=(*stage.tasks, pairs), task_weights=(0.5, 0.5))
    walked = WalkTarget.of_member(replace(roberta, stages=(two,))).part_note
    assert walked == "walked here: task 'cloze', the first of 2; --task takes another: pairs"


def test_a_member_that_folds_case_is_walked_in_lower_case():
    for name, first in (("bert", "an"), ("spanbert", "An")):
        subject = WalkTarget.of_member(member(name))
        ground = WalkContext.toy([ENGLISH, other_toy_document(ENGLISH)], subject.spelling)
        found = walk(
            subject, annotate(ENGLISH, frozenset()), ground, annotate(other_toy_document(ENGLISH), frozenset())
        )
        assert found.tokens[0].text == first
        assert ("lower-case" in found.context.vocab_source) == (name == "bert")


def test_the_answers_of_a_cloze_are_the_hidden_tokens():
    for draw in take(of_rule("token"), visits=range(10)).corrupted_rows:
        (answers,) = draw.targets
        assert isinstance(answers, PredictedTokens)
        for one in answers.tokens:
            assert one.target_token == ("[CLS]", *SENTENCE)[one.position]
            assert one.input_token == draw.inputs[0][one.position]
            assert (one.fate is TokenFate.MASK) == (one.input_token == "[MASK]")


def test_span_borders_are_named():
    found = set()
    for draw in take(of_rule("span"), visits=range(20)).corrupted_rows:
        shown, said = draw.inputs[0], draw.targets[1].description
        for number, span in enumerate(draw.steps[0].selected_spans, start=1):
            inner = span.positions[0] > 1 and span.positions[-1] < len(shown) - 2
            sides = f"{shown[span.positions[0] - 1]} … {shown[span.positions[-1] + 1]} for span {number}"
            assert (sides in said) == inner
            found.add(inner)
    assert found == {True, False}, "a span at an end of the text has no border there"


def test_decoders_write_spans_or_everything():
    (t5,), (bart,), (mass,) = (take(of_rule(name)).corrupted_rows[0].targets for name in ("t5", "bart", "mass"))
    assert isinstance(t5, DecoderScript)
    assert [one.token for one in t5.tokens if one.fate is TokenFate.SENTINEL] == [f"<extra_id_{n}>" for n in range(3)]
    assert "".join(one.token for one in bart.tokens) == f"[CLS]{SENTENCE}[SEP]"
    assert len(mass.tokens) == len(SENTENCE) // 2
    assert "".join(one.token for one in mass.tokens) in SENTENCE


def test_who_sees_whom():
    (everyone,) = take(of_rule("token")).streams
    assert everyone.grid.all()
    assert everyone.query_groups == (tuple(range(18)),)
    (past,) = take(of_rule("gpt")).streams
    assert np.array_equal(past.grid, np.tri(18, dtype=bool))
    found = take(of_rule("xlnet"))
    content, query = found.streams
    turns = prediction_turns(found.corrupted_rows[0])
    order = sorted(turns, key=lambda place: int(turns[place]))
    assert [line[0] for line in query.query_groups] == order
    for number, place in enumerate(order):
        assert content.grid[place, place]
        assert not query.grid[place, place]
        assert query.grid[place, order[:number]].all()
        assert not query.grid[place, order[number:]].any()


def test_a_long_text_fills_several_rows():
    assert take(of_rule("token"), (SENTENCE + "。") * 60).num_rows > 1
    assert take(of_rule("token")).num_rows == 1
