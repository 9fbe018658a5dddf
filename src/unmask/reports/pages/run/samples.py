"""Filled holes through a run: for each sentence, how the guesses change from trial to trial.

What arrives: the samples of a record. What leaves: each sentence once, and below it a table of guesses by step.
What never happens here: a guess without the truth beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unmask.reports.html.elements import Html, span, tag, text
from unmask.reports.read_log import Json
from unmask.reports.read_run import RunRecord

_MAX_EVALS = 7


def samples_html(record: RunRecord) -> list[Html]:
    """Every sentence of the samples. Long runs show a few trials, evenly chosen, the first and the last among them."""
    trials = {int(sample["step"]): sample["lines"] for sample in record.samples}
    sentences: dict[tuple[str, ...], dict[int, Json]] = {}
    for step, lines in trials.items():
        for line in lines:
            sentences.setdefault(tuple(line["shown"]), {})[step] = line
    return [_sentence(list(shown), by_step) for shown, by_step in sentences.items()]


def choose_evenly(steps: Sequence[int], max_steps: int) -> list[int]:
    """At most so many steps, evenly spread in their order."""
    if len(steps) <= max_steps:
        return list(steps)
    return [steps[place] for place in np.linspace(0, len(steps) - 1, max_steps).round().astype(int).tolist()]


def _sentence(shown: list[str], by_step: dict[int, Json]) -> Html:
    truth: dict[str, str] = next(iter(by_step.values()))["truth"]
    chips = [_chip(token, truth.get(str(place), "")) for place, token in enumerate(shown)]
    places = sorted(truth, key=int)
    rows = [_row(step, by_step[step], places) for step in choose_evenly(sorted(by_step), _MAX_EVALS)]
    asked = tag("th", "", text("asked for")), *(tag("th", "truth", text(truth[place])) for place in places)
    table = tag("table", "guesses", tag("thead", "", tag("tr", "", *asked)), tag("tbody", "", *rows))
    return tag("div", "sample", tag("div", "row", *chips), tag("div", "wide", table))


def _chip(token: str, truth: str) -> Html:
    """A token of the row; below one that is asked for, what is true there."""
    if not truth:
        return tag("span", "chip plain", text(token))
    fate = "kept" if token == truth else "mask"
    return tag("span", f"chip {fate}", text(token), tag("sub", "", text(truth)), title="asked for")


def _row(step: int, line: Json, places: Sequence[str]) -> Html:
    cells = [_cell(line["guesses"].get(place, []), line["truth"].get(place, "")) for place in places]
    return tag("tr", "", tag("td", "soft", text(f"step {step:,}")), *cells)


def _cell(guesses: Sequence[Sequence[object]], truth: str) -> Html:
    """The likeliest guesses, the first large; the truth is marked wherever it stands."""
    marked = [_guess(str(token), float(str(chance)), str(token) == truth) for token, chance in guesses]
    return tag("td", "", tag("div", "first", *marked[:1]), tag("div", "others", *marked[1:]))


def _guess(token: str, chance: float, right: bool) -> Html:
    name = tag("span", "yes", text(f"{token} ✓")) if right else text(token)
    return tag("span", "guess", name, span("soft chance", _percent(chance)))


def _percent(chance: float) -> str:
    """A probability without false exactness: `42 %`, `0.3 %`."""
    return f"{100 * chance:.{0 if chance >= 0.095 else 1}f} %" if chance >= 0.0005 else "< 0.1 %"
