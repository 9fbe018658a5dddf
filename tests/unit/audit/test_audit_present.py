"""What a person reads: numbers, bars, verdicts."""

from __future__ import annotations

import json

import pytest

from unmask.audit.finding import (
    Above,
    Finding,
    Findings,
    Histogram,
    Open,
    Section,
    Unit,
    Verdict,
    Within,
    chance,
    never,
    plural,
    ratio,
    share,
    wanted,
)
from unmask.audit.present import BAR, bars, data, expected, heading, number, verdict


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.15034, Unit.SHARE, "15.03 %"), (3.797, Unit.MEAN, "3.80"), (2000, Unit.COUNT, "2,000"), (0, Unit.COUNT, "0")],
)
def test_numbers_are_written_with_their_unit(value, unit, text):
    assert number(value, unit) == text


@pytest.mark.parametrize(
    ("rule", "unit", "text"),
    [
        (Within(0.15, 0.005), Unit.SHARE, "15.00 % ±0.50"),
        (Within(3.8, 0.05), Unit.MEAN, "3.80 ±0.05"),
        (Within(0), Unit.COUNT, "0"),
        (Above(0.5), Unit.SHARE, "> 50.00 %"),
        (Above(0.5, 0.0474), Unit.SHARE, "> 45.26 %"),
        (Above(0.5, 1.3738), Unit.SHARE, "> 0.00 %"),
        (Within(0.8, 0.2987), Unit.SHARE, "80.00 % ±30"),
        (Within(0.5, 1.5178), Unit.SHARE, "50.00 % ±100"),
        (Open(), Unit.SHARE, "-"),
    ],
)
def test_a_rule_is_written_with_its_tolerance(rule, unit, text):
    assert expected(Finding("x", 0.0, rule, unit)) == text


@pytest.mark.parametrize(
    ("measured", "rule", "said"),
    [
        (0.1549, Within(0.15, 0.005), Verdict.HOLDS),
        (0.1551, Within(0.15, 0.005), Verdict.BROKEN),
        (0.1449, Within(0.15, 0.005), Verdict.BROKEN),
        (0.0, Above(0.0), Verdict.BROKEN),
        (0.1, Above(0.0), Verdict.HOLDS),
        (0.46, Above(0.5, 0.05), Verdict.HOLDS),
        (0.45, Above(0.5, 0.05), Verdict.BROKEN),
        (7.0, Open(), Verdict.REPORTED),
        (0.79, Within(0.8, 0.1), Verdict.HOLDS),
        (0.79, Within(0.8, 0.11), Verdict.TOO_FEW),
        (0.6, Within(0.8, 0.11), Verdict.BROKEN),
        (0.75, Above(0.5, 1.37), Verdict.TOO_FEW),
    ],
)
def test_the_verdict_follows_from_the_number_and_the_rule(measured, rule, said):
    assert Finding("x", measured, rule, Unit.SHARE).verdict is said


def test_a_mean_with_a_wide_tolerance_is_not_judged():
    assert Finding("x", 2.1, Within(2.0, 0.5), Unit.MEAN).verdict is Verdict.HOLDS
    assert Finding("x", 2.1, Within(2.0, 0.51), Unit.MEAN).verdict is Verdict.TOO_FEW
    assert Finding("x", 4.0, Within(2.0, 0.51), Unit.MEAN).verdict is Verdict.BROKEN


def test_a_name_says_which_share_is_wanted():
    assert wanted("shown: similar words", 0.8) == "shown: similar words (80 % wanted)"
    assert wanted("tokens chosen", 0.1 + 0.05) == "tokens chosen (15 % wanted)"


@pytest.mark.parametrize(("one", "many"), [("word", "words"), ("entity", "entities"), ("row", "rows")])
def test_several_of_a_kind(one, many):
    assert plural(one) == many


def test_what_must_not_happen_breaks_the_rule_at_the_first_time():
    assert never("x", 0).verdict is Verdict.HOLDS
    assert never("x", 1).verdict is Verdict.BROKEN


def test_a_share_may_be_off_by_chance_but_not_by_more():
    draws = 10_000
    slack = chance(0.8, draws)
    assert 4 * 0.004 < slack < 4.2 * 0.004
    assert share("x", 8000 + draws * slack - 1, draws, 0.8, draws).verdict is Verdict.HOLDS
    assert share("x", 8000 + draws * slack + 1, draws, 0.8, draws).verdict is Verdict.BROKEN
    assert ratio(1, 0) == 0


def test_bars_are_as_long_as_their_share_and_the_law_is_marked():
    lines = bars(Histogram("runs", 1, (0.5, 0.25, 0.25, 0.0), (0.5, 0.5, 0.0, 0.0), 100))
    assert [line.split("%")[0].split() for line in lines] == [["1", "50.00"], ["2", "25.00"], ["3", "25.00"]]
    drawn = [line.rsplit("%  ", 1)[1] for line in lines]
    assert drawn[0] == "#" * (BAR - 1) + "|"
    assert drawn[1] == "#" * (BAR // 2) + " " * (BAR // 2 - 1) + "|"
    assert drawn[2] == "|" + "#" * (BAR // 2 - 1)
    assert max(map(len, lines)) <= 80


def section(*findings):
    return Section("cloze", 128, 2000, 250_781, findings, (Histogram("runs", 1, (1.0,), (1.0,), 3),))


def test_the_verdict_is_one_line_that_names_what_is_broken():
    sound, open_ = never("specials", 0), Finding("padding", 0.1, Open(), Unit.SHARE)
    assert verdict(Findings("wwm", (section(sound, open_),))) == "wwm: every rule holds (1 judged)."
    broken = Findings("wwm", (section(sound, never("empty", 2)), section(never("empty", 1))))
    assert verdict(broken) == "wwm: 2 of 3 rules broken: empty."
    assert not broken.holds
    assert verdict(Findings("wwm", (section(never("empty", 1)),))) == "wwm: 1 of 1 rule broken: empty."


def test_the_verdict_counts_what_could_not_be_judged():
    sound, vague = never("specials", 0), share("kept", 1, 10, 0.1, 10)
    findings = Findings("wwm", (section(sound, vague), section(vague)))
    assert findings.holds
    assert verdict(findings) == "wwm: every judged rule holds (1); 2 could not be judged, too few rows."
    broken = Findings("wwm", (section(sound, vague, never("empty", 2)),))
    assert verdict(broken) == "wwm: 1 of 2 rules broken: empty; 1 could not be judged, too few rows."


def test_a_heading_counts_rows_and_tokens():
    assert heading(section()) == "cloze, rows of 128: 2,000 rows, 250,781 tokens"
    assert heading(Section("cloze", 128, 1, 1, (), ())) == "cloze, rows of 128: 1 row, 1 token"


def test_json_holds_every_number_and_survives():
    kept, few = share("kept", 100, 1000, 0.1, 1000), share("few", 1, 10, 0.1, 10)
    findings = Findings("wwm", (section(kept, Finding("a", 1.0, Open(), Unit.MEAN), few),))
    said = json.loads(json.dumps(data(findings)))
    first, second, third = said["sections"][0]["findings"]
    assert (first["measured"], first["expected"], first["rule"], first["verdict"]) == (0.1, 0.1, "within", "holds")
    assert (second["rule"], second["expected"], second["verdict"]) == ("open", None, "reported")
    assert third["verdict"] == "too few rows"
    assert said["sections"][0]["histograms"][0]["law"] == [1.0]
    assert said["holds"] is True
