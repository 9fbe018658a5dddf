"""A suite as one page: every task with the scores of all seeds, beside those from scratch.

What arrives: lines of figures. What leaves: HTML with its style inside.
What never happens here: a mean without its seeds. Every score is a dot.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from unmask.reports.charts.bars import draw_dots
from unmask.reports.html.elements import EMPTY, Html, span, table, tag, text
from unmask.reports.html.page import page
from unmask.reports.text.score_format import format_mean_std

_COLUMNS = ("task", "score", "pre-trained", "from scratch", "gain", "chance", "all seeds")


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One task: its score's name, and the scores of both sides, seed by seed."""

    name: str
    score: str
    tuned: tuple[float, ...]
    scratch: tuple[float, ...]
    baseline: float
    """Not a number where a guess has no score."""


def suite_page(title: str, tasks: Sequence[SuiteRow]) -> str:
    """The whole page."""
    head = tag("header", "", tag("h1", "", text(title), tag("small", "", text("评测"))), _legend())
    rows = [_row(task) for task in tasks]
    footer = tag("footer", "", text("made by unmask evaluate; ± is the standard deviation over seeds"))
    body = tag("main", "run", head, tag("section", "broad", table(_COLUMNS, rows)), footer)
    return page(f"suite: {title}", body, ("walk.css", "run.css"))


def _legend() -> Html:
    said = (("c0", "tuned from the network"), ("c1", "the same network from scratch"))
    keys = (tag("span", "", tag("i", f"key line {css}"), text(words)) for css, words in said)
    return tag("p", "legend", *keys)


def _row(task: SuiteRow) -> list[Html]:
    gain = statistics.fmean(task.tuned) - statistics.fmean(task.scratch) if task.tuned and task.scratch else math.nan
    every = [score for score in (*task.tuned, *task.scratch, task.baseline) if math.isfinite(score)]
    line = draw_dots((task.tuned, task.scratch), min(every, default=0.0), max(every, default=1.0))
    sides = text(format_mean_std(task.tuned)), text(format_mean_std(task.scratch))
    cells = (*sides, _number(100 * gain, "+.1f"), _number(100 * task.baseline, ".1f"))
    return [_cell(tag("b", "", text(task.name))), _cell(span("soft", task.score)), *map(_cell, cells), _cell(line)]


def _number(value: float, form: str) -> Html:
    return text(format(value, form)) if math.isfinite(value) else EMPTY


def _cell(content: Html) -> Html:
    return tag("td", "", content)
