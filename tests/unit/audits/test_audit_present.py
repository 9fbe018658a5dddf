"""What a person reads: numbers, bars, verdicts."""

from __future__ import annotations

import json

import pytest

from unmask.audits.finding import (
    AtLeast,
    Expected,
    Finding,
    Findings,
    FindingUnit,
    Histogram,
    Section,
    Unspecified,
    Verdict,
    labelled_by_target,
    plural,
    ratio,
    sampling_tolerance,
    share_finding,
    violation,
)
from unmask.audits.render import (
    BAR_WIDTH,
    format_expected,
    format_number,
    heading,
    histogram_lines,
    to_json_data,
    verdict_line,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.15034, FindingUnit.SHARE, "15.03 %"),
        (3.797, FindingUnit.MEAN, "3.80"),
        (2000, FindingUnit.COUNT, "2,000"),
        (0, FindingUnit.COUNT, "0"),
    ],
)
def test_numbers_are_written_with_their_unit(value, unit, text):
    assert format_number(value, unit) == text


@pytest.mark.parametrize(
    ("rule", "unit", "text"),
    [
        (Expected(0.15, 0.005), FindingUnit.SHARE, "15.00 % ±0.50"),
        (Expected(3.8, 0.05), FindingUnit.MEAN, "3.80 ±0.05"),
        (Expected(0), FindingUnit.COUNT, "0"),
        (AtLeast(0.5), FindingUnit.SHARE, "> 50.00 %"),
        (AtLeast(0.5, 0.0474), FindingUnit.SHARE, "> 45.26 %"),
        (AtLeast(0.5, 1.3738), FindingUnit.SHARE, "> 0.00 %"),
        (Expected(0.8, 0.2987), FindingUnit.SHARE, "80.00 % ±30"),
        (Expected(0.5, 1.5178), FindingUnit.SHARE, "50.00 % ±100"),
        (Unspecified(), FindingUnit.SHARE, "-"),
    ],
)
def test_a_rule_is_written_with_its_tolerance(rule, unit, text):
    assert format_expected(Finding("x", 0.0, rule, unit)) == text


@pytest.mark.parametrize(
    ("measured", "rule", "said"),
    [
        (0.1549, Expected(0.15, 0.005), Verdict.HOLDS),
        (0.1551, Expected(0.15, 0.005), Verdict.BROKEN),
        (0.1449, Expected(0.15, 0.005), Verdict.BROKEN),
        (0.0, AtLeast(0.0), Verdict.BROKEN),
        (0.1, AtLeast(0.0), Verdict.HOLDS),
        (0.46, AtLeast(0.5, 0.05), Verdict.HOLDS),
        (0.45, AtLeast(0.5, 0.05), Verdict.BROKEN),
        (7.0, Unspecified(), Verdict.REPORTED),
        (0.79, Expected(0.8, 0.1), Verdict.HOLDS),
        (0.79, Expected(0.8, 0.11), Verdict.TOO_FEW),
        (0.6, Expected(0.8, 0.11), Verdict.BROKEN),
        (0.75, AtLeast(0.5, 1.37), Verdict.TOO_FEW),
    ],
)
def test_the_verdict_follows_from_the_number_and_the_rule(measured, rule, said):
    assert Finding("x", measured, rule, FindingUnit.SHARE).verdict is said


def test_a_mean_with_a_wide_tolerance_is_not_judged():
    assert Finding("x", 2.1, Expected(2.0, 0.5), FindingUnit.MEAN).verdict is Verdict.HOLDS
    assert Finding("x", 2.1, Expected(2.0, 0.51), FindingUnit.MEAN).verdict is Verdict.TOO_FEW
    assert Finding("x", 4.0, Expected(2.0, 0.51), FindingUnit.MEAN).verdict is Verdict.BROKEN


def test_a_name_says_which_share_is_wanted():
    assert labelled_by_target("shown: similar words", 0.8) == "shown: similar words (80 % wanted)"
    assert labelled_by_target("tokens chosen", 0.1 + 0.05) == "tokens chosen (15 % wanted)"


@pytest.mark.parametrize(("one", "many"), [("word", "words"), ("entity", "entities"), ("row", "rows")])
def test_several_of_a_kind(one, many):
    assert plural(one) == many


def test_what_must_not_happen_breaks_the_rule_at_the_first_time():
    assert violation("x", 0).verdict is Verdict.HOLDS
    assert violation("x", 1).verdict is Verdict.BROKEN


def test_a_share_may_be_off_by_chance_but_not_by_more():
    draws = 10_000
    slack = sampling_tolerance(0.8, draws)
    assert 4 * 0.004 < slack < 4.2 * 0.004
    assert share_finding("x", 8000 + draws * slack - 1, draws, 0.8, draws).verdict is Verdict.HOLDS
    assert share_finding("x", 8000 + draws * slack + 1, draws, 0.8, draws).verdict is Verdict.BROKEN
    assert ratio(1, 0) == 0


def test_bars_are_as_long_as_their_share_and_the_law_is_marked():
    lines = histogram_lines(Histogram("runs", 1, (0.5, 0.25, 0.25, 0.0), (0.5, 0.5, 0.0, 0.0), 100))
    assert [line.split("%")[0].split() for line in lines] == [["1", "50.00"], ["2", "25.00"], ["3", "25.00"]]
    drawn = [line.rsplit("%  ", 1)[1] for line in lines]
    assert drawn[0] == "#" * (BAR_WIDTH - 1) + "|"
    assert drawn[1] == "#" * (BAR_WIDTH // 2) + " " * (BAR_WIDTH // 2 - 1) + "|"
    assert drawn[2] == "|" + "#" * (BAR_WIDTH // 2 - 1)
    assert max(map(len, lines)) <= 80


def section(*findings):
    return Section("cloze", 128, 2000, 250_781, findings, (Histogram("runs", 1, (1.0,), (1.0,), 3),))


def test_the_verdict_is_one_line_that_names_what_is_broken():
    sound, open_ = violation("specials", 0), Finding("padding", 0.1, Unspecified(), FindingUnit.SHARE)
    assert verdict_line(Findings("wwm", (section(sound, open_),))) == "wwm: every rule holds (1 judged)."
    broken = Findings("wwm", (section(sound, violation("empty", 2)), section(violation("empty", 1))))
    assert verdict_line(broken) == "wwm: 2 of 3 rules broken: empty."
    assert not broken.holds
    assert verdict_line(Findings("wwm", (section(violation("empty", 1)),))) == "wwm: 1 of 1 rule broken: empty."


def test_the_verdict_counts_what_could_not_be_judged():
    sound, vague = violation("specials", 0), share_finding("kept", 1, 10, 0.1, 10)
    findings = Findings("wwm", (section(sound, vague), section(vague)))
    assert findings.holds
    assert verdict_line(findings) == "wwm: every judged rule holds (1); 2 could not be judged, too few rows."
    broken = Findings("wwm", (section(sound, vague, violation("empty", 2)),))
    assert verdict_line(broken) == "wwm: 1 of 2 rules broken: empty; 1 could not be judged, too few rows."


def test_a_heading_counts_rows_and_tokens():
    assert heading(section()) == "cloze, rows of 128: 2,000 rows, 250,781 tokens"
    assert heading(Section("cloze", 128, 1, 1, (), ())) == "cloze, rows of 128: 1 row, 1 token"


def test_json_holds_every_number_and_survives():
    kept, few = share_finding("kept", 100, 1000, 0.1, 1000), share_finding("few", 1, 10, 0.1, 10)
    findings = Findings("wwm", (section(kept, Finding("a", 1.0, Unspecified(), FindingUnit.MEAN), few),))
    said = json.loads(json.dumps(to_json_data(findings)))
    first, second, third = said["sections"][0]["findings"]
    assert (first["measured"], first["expected"], first["rule"], first["verdict"]) == (0.1, 0.1, "expected", "holds")
    assert (second["rule"], second["expected"], second["verdict"]) == ("unspecified", None, "reported")
    assert third["verdict"] == "too few rows"
    assert said["sections"][0]["histograms"][0]["law"] == [1.0]
    assert said["holds"] is True
