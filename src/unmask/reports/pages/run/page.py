"""A run as one page, or several runs beside each other: a single file that opens in any browser, with no network.

What arrives: records of runs. What leaves: HTML with its style and pictures inside, for any width, in light and dark.
What never happens here: a request, text that was not escaped, or anything that only a script would show. The one
script reads values off a curve under the pointer; without it the page is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from unmask.core.codec import to_tree
from unmask.core.errors import InputError
from unmask.reports.charts.bars import draw_bars
from unmask.reports.charts.curves import NUM_COLORS
from unmask.reports.html.elements import EMPTY, Html, span, table, tag, text
from unmask.reports.html.page import page
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
from unmask.reports.pages.run.audit import audit_html, audit_run
from unmask.reports.pages.run.charts import ChartContext, chart_groups
from unmask.reports.pages.run.key_numbers import comparison_table, key_numbers
from unmask.reports.pages.run.samples import samples_html
from unmask.reports.read_run import RunRecord


def write_report(records: Sequence[RunRecord], path: Path) -> None:
    """Write the page to a file."""
    try:
        path.write_text(run_page(records), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}). Choose another file with --out.") from error


def run_page(records: Sequence[RunRecord]) -> str:
    """The whole page: one run in full, or several compared, each to be opened."""
    title = title_of(records[0]) if len(records) == 1 else f"{len(records)} runs"
    parts = _single_run(records[0]) if len(records) == 1 else _several_runs(records)
    footer = tag("footer", "", text("made by unmask report from the record of the run"))
    body = tag("main", "run", *parts, footer)
    return page(f"run: {title}", body, ("walk.css", "run.css"), "run.js")


def run_labels(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """What each run is called: its folder's name, or the whole path where two have the same name."""
    names = [record.folder.resolve().name for record in records]
    several = zip(records, names, strict=True)
    return tuple(name if names.count(name) == 1 else str(record.folder) for record, name in several)


def _single_run(record: RunRecord) -> Iterator[Html]:
    english, chinese = kind_of(record)
    head = tag("h1", "", text(title_of(record)), tag("small", "", text(f"{english} {chinese}")))
    yield tag("header", "", head, tag("p", "", text(about_of(record))), _state(record))
    yield from _sections(record)


def _several_runs(records: Sequence[RunRecord]) -> Iterator[Html]:
    labels = run_labels(records)
    head = tag("h1", "", text(f"{len(records)} runs"), tag("small", "", text("对比")))
    says = tag("p", "soft", text("Lines are training, smoothed; dots are validation. Losses are the best validation."))
    yield tag("header", "", head, says)
    yield tag("section", "broad", _comparison(records, labels))
    for english, chinese, charts in chart_groups(ChartContext(tuple(records), labels)):
        yield _section(english, chinese, charts)
    for number, (label, record) in enumerate(zip(labels, records, strict=True)):
        title = tag("h2", "", _swatch(number), text(f"{label}: {title_of(record)}"))
        yield tag("details", "", tag("summary", "", title, span("soft", f" {state_of(record)}")), *_sections(record))


def _sections(record: RunRecord) -> Iterator[Html]:
    """Everything about one run."""
    yield _section("figures", "概览", _tiles(record))
    for english, chinese, charts in chart_groups(ChartContext((record,), ("",))):
        yield _section(english, chinese, charts)
    if record.samples:
        about = "Held-out rows: under a token that is asked for stands the truth; ✓ marks it among the guesses."
        yield _section("filled masks", "填空", tag("p", "about", text(about)), *samples_html(record))
    if record.layer_weights:
        about = "How much each layer counts for the task, learned with it; the embeddings are layer 0."
        names = [f"layer {number}" for number in range(len(record.layer_weights))]
        yield _section("layers", "各层权重", tag("p", "about", text(about)), draw_bars(names, record.layer_weights))
    yield _section("run", "任务", _facts(record))
    if record.metadata.get("recipe"):
        yield _section("recipe", "配方", *_recipe(record))
        yield _section("audit", "审计", *audit_html(audit_run(record)))


def _section(english: str, chinese: str, *content: Html) -> Html:
    name = tag("span", "", text(english), tag("small", "", text(chinese)))
    return tag("section", "", tag("h2", "", name), tag("div", "", *content))


def _state(record: RunRecord) -> Html:
    return tag("p", "", span("yes" if record.is_finished else "stopped", state_of(record)))


def _tiles(record: RunRecord) -> Html:
    tiles = []
    for figure in key_numbers(record):
        note = tag("small", "", text(figure.note)) if figure.note else EMPTY
        tiles.append(tag("div", "tile", span("soft", figure.name), tag("b", "", text(figure.value)), note))
    return tag("div", "tiles", *tiles)


def _facts(record: RunRecord) -> Html:
    facts = facts_of(record)
    return tag("dl", "", *(part for k, v in facts for part in (tag("dt", "", text(k)), tag("dd", "", text(v)))))


def _recipe(record: RunRecord) -> Iterator[Html]:
    recipe = recipe_of(record)
    if isinstance(recipe, MissingPart):
        yield tag("p", "about", text(recipe.reason))
        return
    yield tag("p", "", text(f"{recipe.title}, {recipe.year}"), span("soft", f" · {recipe.paper}"))
    changes = changes_of(recipe)
    if isinstance(changes, MissingPart):
        yield tag("p", "about", text(changes.reason))
    elif not changes:
        yield tag("p", "about", text("As published: nothing was changed."))
    else:
        yield table(("changed here", "published", "this run"), ([_cell(text(word)) for word in row] for row in changes))
    lines = to_tree(recipe)
    summary = tag("summary", "", text(f"the recipe in full, {len(lines)} lines"))
    yield tag("details", "fold", summary, tag("pre", "", text("\n".join(lines))))


def _comparison(records: Sequence[RunRecord], labels: Sequence[str]) -> Html:
    columns, rows = comparison_table(records)
    cells = [[text(cell) for cell in row] for row in rows]
    for number, (label, row) in enumerate(zip(labels, cells, strict=True)):
        row[0] = Html(_swatch(number) + tag("b", "", text(label)) + span("soft", f" {rows[number][0]}"))
    return table(columns, (map(_cell, row) for row in cells))


def _cell(content: Html) -> Html:
    return tag("td", "", content)


def _swatch(number: int) -> Html:
    dashed = " dashed" if number >= NUM_COLORS else ""
    return tag("i", f"key line c{number % NUM_COLORS}{dashed}")
