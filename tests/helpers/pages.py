"""One sample of every page, and a page as an outline that can be read and compared."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from runs import record, write_run
from walks import SEVERAL, SUBJECTS, take

from unmask.core.codec import override
from unmask.members import member
from unmask.reports.charts.curves import ChartLine, ChartPanel, ChartPoint
from unmask.reports.landscape_results import (
    Basin,
    DevMetric,
    Directions,
    Landscape,
    LandscapeSide,
    LayerDistance,
    LossLine,
    LossMap,
    LossPoint,
    LossRise,
    RolledBack,
    TrainingCurves,
)
from unmask.reports.pages.compare import ComparisonReport, CostRow, MemberRow, RecipeDifference, compare_page
from unmask.reports.pages.landscape import landscape_page
from unmask.reports.pages.run.page import run_page
from unmask.reports.pages.suite import SuiteRow, suite_page
from unmask.reports.pages.walk import walk_page
from unmask.reports.read_run import read_run
from unmask.reports.text.number_format import NumberFormat

VOID = {"meta", "path", "rect", "circle", "line", "i"}
"""Elements without content; `i` is one where it is a key of a legend."""
NASTY = "<b>&\"'"
GOLDEN = Path(__file__).parent.parent / "golden" / "pages"


def landscape_side(name: str, shift: float) -> LandscapeSide:
    axis = tuple(np.linspace(-1, 2, 5).tolist())
    rows = tuple(
        tuple(LossPoint(0.1 + shift + (a - 1) ** 2 + b**2, 0.5, min(0.1 * a**2, 1.0)) for a in axis) for b in axis
    )
    line = rows[2]
    return LandscapeSide(
        name=name,
        training=TrainingCurves((1.0, 2.0, 3.0), (0.7, 0.5, 0.2), (0.0, 3.0), (line[0], line[3])),
        line=LossLine(axis, line),
        map=LossMap(
            Directions.RUNS, axis, axis, rows, ((0.0, 0.0), (0.6, 0.2), (1.0, 0.0)), (0.0, 0.4, 0.0), (0.0, 0.9), 0.5
        ),
        basins=(Basin(0.2, 0.5, 1.5, True),) * 2,
        rises=(LossRise(0.1, 0.2, 0.1), LossRise(0.2, 0.5, 0.1)),
        layers=(LayerDistance("embeddings", 0.1, 5.0), LayerDistance("head", 0.1, 0.0)),
        rolled_back=(RolledBack("all blocks", line[0]),),
        moved=1.0,
        norm=10.0,
    )


def landscape(judged_by: DevMetric = DevMetric.ERROR) -> Landscape:
    sides = landscape_side("pre-trained", 0.0), landscape_side("from scratch", 0.3)
    return Landscape(f"net on {NASTY}.jsonl", (("task", "a & b"),), judged_by, *sides)


def comparison() -> ComparisonReport:
    lines = tuple(
        ChartLine(name, color, tuple(ChartPoint(1e6 * n, 60.0 * n, 1e15 * n, 3.0 - color - n / 4) for n in (1, 2, 3)))
        for color, name in enumerate(("bert", NASTY))
    )
    return ComparisonReport(
        title=f"bert · {NASTY}",
        description=("20 steps each.", "All members use one vocabulary."),
        tasks={"reviews": "accuracy"},
        rows=(
            MemberRow("bert", {"reviews": (0.8, 0.9)}, 0.85, (0,)),
            MemberRow(NASTY, {}, float("nan"), (7,)),
            MemberRow("guess", {"reviews": (0.5,)}, 0.5, is_measured=False),
        ),
        costs=(CostRow("bert", 4_385_920, 20.0, 1.2e6, 3.4e15, 75.0, 2.5, 0.31, "mlm"),),
        panels=(ChartPanel("held-out loss", "损失", "mlm", NumberFormat.PLAIN, lines),),
        reference="bert",
        differences=(RecipeDifference(NASTY, (("masking", "static", "dynamic"),)),),
    )


def suite() -> tuple[SuiteRow, ...]:
    nan = float("nan")
    return (
        SuiteRow("reviews", "accuracy", (0.81, 0.85), (0.6, 0.62), 0.5),
        SuiteRow(NASTY, "F1", (0.7,), (), nan),
    )


def run_records(folder: Path) -> list:
    """A finished run with a changed recipe, and one that was stopped."""
    recipe = override(member("bert", "tiny"), "stages.0.max_length", "64")
    mine = replace(member("bert", "tiny"), name="mine")
    return [
        read_run(write_run(folder / "one", record(120, 30, resumes=(60,)), recipe=recipe)),
        read_run(write_run(folder / "two", record(60, 30, of=120), finished=False, recipe=mine)),
    ]


def sample_pages(folder: Path) -> dict[str, str]:
    """Every page by its name."""
    runs = run_records(folder)
    both = run_page(runs)
    bert = next(subject for subject in SUBJECTS if subject.name == "bert")
    return {
        "run": run_page(runs[:1]).replace(str(folder), "runs"),
        "runs": both.replace(str(folder), "runs"),
        "compare": compare_page(comparison()),
        "landscape": landscape_page(landscape(), [("loss at the end", "0.1", "0.4")], ["The basin is <wide>."]),
        "suite": suite_page(f"net {NASTY}", suite()),
        "walk": walk_page([take(bert, SEVERAL)]),
        "walks": walk_page([take(name) for name in ("t5", "xlnet")]),
    }


def outlines(folder: Path) -> dict[str, str]:
    """The outline of every page, as it is kept in the golden files."""
    return {name: "\n".join(Outline(page).lines) + "\n" for name, page in sample_pages(folder).items()}


class Outline(HTMLParser):
    """A page as one line for each element and each text; fails where a tag is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.attributes += attributes
        shown = [f"{key}={_short(key, value or '')}" for key, value in attributes]
        self.lines.append("  " * len(self.open) + " ".join([f"<{name}>", *shown]))
        if name not in VOID - {"i"}:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        if name not in VOID - {"i"}:
            assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        words = " ".join(data.split())
        if words and not {"style", "script"} & set(self.open):
            self.words.append(data)
            self.lines.append("  " * len(self.open) + ("(the recipe)" if "pre" in self.open else words))

    @property
    def text(self) -> str:
        """All text outside of style and script."""
        return " ".join(self.words)


def _short(key: str, value: str) -> str:
    """Numbers of a curve depend on the machine in their last digit; only how many there are is kept."""
    return f"({len(value.split())} numbers)" if key == "d" else value
