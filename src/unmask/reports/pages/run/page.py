"""The page of a run, or of several runs compared: the values of its template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from unmask.core.codec import to_tree
from unmask.core.errors import InputError
from unmask.reports.charts.svg import draw_bars
from unmask.reports.html import EMPTY, render_page
from unmask.reports.pages.run.about import (
    MissingPart,
    about_of,
    changes_of,
    facts_of,
    kind_of,
    recipe_of,
    state_of,
    title_of,
)
from unmask.reports.pages.run.audit import audit_run, audit_values
from unmask.reports.pages.run.charts import ChartContext, chart_groups
from unmask.reports.pages.run.key_numbers import comparison_table, key_numbers
from unmask.reports.read_log import Json
from unmask.reports.read_run import RunRecord

_MAX_EVALS = 7
"""Evaluations whose predictions are shown."""


def write_report(records: Sequence[RunRecord], path: Path) -> None:
    """Write the page to a file."""
    try:
        path.write_text(run_page(records), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}). Choose another file with --out.") from error


def run_page(records: Sequence[RunRecord]) -> str:
    """The whole page: one run in full, or several compared, each in full in a fold."""
    title = title_of(records[0]) if len(records) == 1 else f"{len(records)} runs"
    labels = run_labels(records)
    columns, rows = comparison_table(records)
    runs = [
        {**_run_values(record), "label": label, "cells": row}
        for record, label, row in zip(records, labels, rows, strict=True)
    ]
    common = list(chart_groups(ChartContext(tuple(records), labels))) if len(records) > 1 else []
    values = {"runs": runs, "columns": columns, "common_charts": common}
    return render_page("run.html", f"run: {title}", values, ("walk.css", "run.css"), "run.js")


def run_labels(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """The name of each run: its folder's name, or the whole path if two runs have the same name."""
    names = [record.folder.resolve().name for record in records]
    several = zip(records, names, strict=True)
    return tuple(name if names.count(name) == 1 else str(record.folder) for record, name in several)


def _run_values(record: RunRecord) -> dict[str, object]:
    """The values of one run."""
    has_recipe = bool(record.metadata.get("recipe"))
    return {
        "title": title_of(record),
        "kind": " ".join(kind_of(record)),
        "summary": about_of(record),
        "state": state_of(record),
        "is_finished": record.is_finished,
        "tiles": list(key_numbers(record)),
        "chart_groups": list(chart_groups(ChartContext((record,), ("",)))),
        "samples": sample_values(record),
        "layer_weights": _layer_weights(record),
        "facts": list(facts_of(record)),
        "recipe": _recipe(record) if has_recipe else None,
        "audit": audit_values(audit_run(record)) if has_recipe else None,
    }


def _layer_weights(record: RunRecord) -> Markup:
    names = [f"layer {number}" for number in range(len(record.layer_weights))]
    return draw_bars(names, record.layer_weights) if names else EMPTY


def _recipe(record: RunRecord) -> dict[str, object]:
    recipe = recipe_of(record)
    if isinstance(recipe, MissingPart):
        return {"reason": recipe.reason}
    changes = changes_of(recipe)
    unknown = changes.reason if isinstance(changes, MissingPart) else ""
    return {
        "reason": "",
        "title": f"{recipe.title}, {recipe.year}",
        "paper": recipe.paper,
        "changes": () if isinstance(changes, MissingPart) else changes,
        "no_changes": unknown or "As published: nothing was changed.",
        "lines": to_tree(recipe),
    }


class SamplePrediction(NamedTuple):
    """A prediction with its probability as text."""

    token: str
    probability: str


def sample_values(record: RunRecord) -> list[dict[str, object]]:
    """Every sample sentence with its predictions at up to seven evaluations, the first and the last included."""
    sentences: dict[tuple[str, ...], dict[int, Json]] = {}
    for evaluation in record.samples:
        for line in evaluation["lines"]:
            sentences.setdefault(tuple(line["shown"]), {})[int(evaluation["step"])] = line
    return [_sample(shown, by_step) for shown, by_step in sentences.items()]


def choose_evenly(steps: Sequence[int], max_steps: int) -> list[int]:
    """At most so many steps, evenly spread in their order."""
    if len(steps) <= max_steps:
        return list(steps)
    return [steps[at] for at in np.linspace(0, len(steps) - 1, max_steps).round().astype(int).tolist()]


def _sample(shown: Sequence[str], by_step: Mapping[int, Json]) -> dict[str, object]:
    truth: dict[str, str] = next(iter(by_step.values()))["truth"]
    positions = sorted(truth, key=int)
    steps = choose_evenly(sorted(by_step), _MAX_EVALS)
    return {
        "tokens": [(token, truth.get(str(position), "")) for position, token in enumerate(shown)],
        "truth": [truth[position] for position in positions],
        "rows": [(f"{step:,}", [_cell(by_step[step], position) for position in positions]) for step in steps],
    }


def _cell(line: Json, position: str) -> tuple[str, list[SamplePrediction]]:
    """The true token and the predictions at one position, the most likely first."""
    guesses = line["guesses"].get(position, [])
    predicted = [SamplePrediction(str(token), _percent(float(chance))) for token, chance in guesses]
    return line["truth"].get(position, ""), predicted


def _percent(chance: float) -> str:
    """A probability with few digits: `42 %`, `0.3 %`."""
    return f"{100 * chance:.{0 if chance >= 0.095 else 1}f} %" if chance >= 0.0005 else "< 0.1 %"
