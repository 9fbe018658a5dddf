"""A walk in the terminal: it fits, it is aligned, and it loses nothing without colour."""

import pytest
from rich.cells import cell_len
from walks import ENGLISH, SENTENCE, SEVERAL, SUBJECTS, take

from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.train import train_tokenizer
from unmask.reports.text.layout import TableCell, TokenColumn, token_table
from unmask.reports.text.walk import summary_lines, walk_lines
from unmask.tasks.presets import find_preset
from unmask.walks.context import WalkContext, annotate
from unmask.walks.walk import WalkTarget, walk


def plain(walk, width=80):
    return [line.plain for line in walk_lines(walk, width)]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
@pytest.mark.parametrize("text", [SENTENCE, SEVERAL, ENGLISH])
def test_every_stage_is_there_and_fits_into_80_columns(subject, text):
    lines = plain(take(subject, text))
    assert max(map(cell_len, lines)) <= 80
    numbers = [line[0] for line in lines if line[:1].isdigit() and line[1:2] == " "]
    assert numbers == list("123456789")
    assert any("yes" in line for line in lines)


def columns_of(line):
    """Where each token of a line begins, in terminal columns."""
    starts, at = {}, 0
    for before, character in zip(" " + line, line, strict=False):
        if character not in " |" and before in " |":
            starts[at] = line[line.index(character) :].split()[0]
        at += cell_len(character)
    return set(starts)


@pytest.mark.parametrize("rule", ["token", "similar", "mass", "span"])
def test_marks_stand_under_their_tokens(rule):
    lines = plain(take(rule), width=200)
    at = next(number for number, line in enumerate(lines) if line.startswith("6 input"))
    before, shown, marks = (next(x for x in lines[at:] if x.split()[:1] == [k]) for k in ("before", "input", "mark"))
    tokens = [columns_of(line[9:]) for line in (before, shown, marks)]
    assert tokens[0] == tokens[1] >= tokens[2]


def test_marks_name_what_happened_without_colour():
    walk = take("ngram")
    marks = next(line for line in plain(walk, 200) if line.strip().startswith("mark")).split()[1:]
    places = [place for place in walk.corrupted_rows[0].steps[0].positions if place.group]
    letters = {"mask": "M", "random": "R", "kept": "K"}
    assert marks == [f"{place.group}{letters[place.fate]}" for place in places]
    assert set("".join(marks)) >= set("MRK")


@pytest.mark.parametrize("rule", ["token", "span", "bart", "gpt", "xlnet"])
def test_parts_of_characters_are_bytes_and_fit(rule):
    tokenizer = train_tokenizer(ByteBPE(size=300), ["the model reads"] * 4)
    ground = WalkContext(tokenizer, tokenizer.vocab, "bytes", "none")
    subject = WalkTarget.of_rule(find_preset(rule), find_preset(rule).task)
    found = walk(
        subject, annotate("我爱 😀 the model。", subject.task.required_units), ground, annotate("你好", frozenset())
    )
    lines = plain(found)
    assert max(map(cell_len, lines)) <= 80
    assert "<E6> <88> <91>" in "\n".join(lines)
    assert "\ufffd" not in "\n".join(lines)


def test_other_draws_are_shown_unless_nothing_is_drawn():
    assert sum(line.startswith(" visit") for line in plain(take("token"))) == 3
    assert sum(line.startswith(" visit") for line in plain(take("gpt"))) == 0
    assert "other draws 其他抽样   every visit is the same" in plain(take("gpt"))


def test_an_order_is_shown_by_its_turns():
    lines = plain(take("xlnet"))
    walk = take("xlnet")
    says = [answer.target_token for answer in walk.corrupted_rows[1].targets[0].tokens]
    assert f"    says {' → '.join(says)}" in lines
    seen = next(line for line in lines if line.startswith(" visit 1"))
    assert f"{says[0]}¹" in seen
    assert f"{says[2]}³" in seen


def test_the_summary_names_every_walk_and_fits():
    walks = [take(subject, visits=(0,)) for subject in SUBJECTS[:17]]
    lines = [line.plain for line in summary_lines(walks, 80)]
    assert max(map(cell_len, lines)) <= 80
    heads = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert heads[:17] == [subject.name.removeprefix("rule ") for subject in SUBJECTS[:17]]
    assert any("higher rate" in line for line in lines)


def test_a_strip_breaks_evenly_and_leaves_no_token_alone():
    columns = [TokenColumn((TableCell("字"), TableCell(str(number)))) for number in range(20)]
    lines = [line.plain for line in token_table(("token", "place"), columns, 66, 9)]
    counts = [line.count("字") for line in lines if "字" in line]
    assert counts == [10, 10]
    assert [line.split()[0] for line in lines if line] == ["token", "place", "token", "place"]
