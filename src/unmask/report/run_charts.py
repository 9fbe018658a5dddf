"""The charts of a run, or of several runs together.

What arrives: records. What leaves: groups of figures on one horizontal axis, with their legend.
What never happens here: mixing. Each chart holds one number; runs differ by colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unmask.report.curve_svg import Across, Chart, Curve, Event, Look, draw, legend, steps_across
from unmask.report.figures import Unit, short, tick_labels, ticks
from unmask.report.markup import Html, tag
from unmask.report.run_figures import is_metric
from unmask.report.run_reading import Reals, Series
from unmask.report.run_record import RunRecord
from unmask.report.run_series import smoothed, thinned, tokens_at

_MOST_EVENTS = 12
_RESUMED = "taken up again"


@dataclass(frozen=True, slots=True)
class Field:
    """Runs that are drawn together. Several are drawn over the tokens they saw, because their steps may differ."""

    runs: tuple[RunRecord, ...]
    labels: tuple[str, ...]

    @property
    def alone(self) -> bool:
        """Whether there is one run only."""
        return len(self.runs) == 1

    @property
    def by_tokens(self) -> bool:
        """Whether the horizontal axis counts tokens."""
        return not self.alone and all(run.tokens for run in self.runs)

    def place(self, series: Series) -> Reals:
        """Where the values of a series stand on the horizontal axis."""
        return series.tokens if self.by_tokens else series.step

    def across(self) -> Across:
        """The horizontal axis. One run has its tokens written below its steps."""
        if self.by_tokens:
            high = max(run.tokens for run in self.runs)
            at = ticks(0.0, high, 5)
            return Across("tokens", high, at, tick_labels(at, Unit.COUNT))
        high = float(max(run.steps for run in self.runs))
        return steps_across(high, self._second(high))

    def _second(self, high: float) -> tuple[str, ...]:
        if not self.alone or not self.runs[0].tokens:
            return ()
        run = self.runs[0]
        longest = max((*run.training.values(), *run.trials.values()), key=len)
        return tuple(map(short, tokens_at(longest, np.array(ticks(0.0, max(high, 1.0), 5)))))

    def events(self) -> tuple[Event, ...]:
        """Where a single run was taken up again, and where its rows changed their length."""
        if not self.alone:
            return ()
        resumes = [Event(step, "") for step in self.runs[0].resumes]
        grown = [Event(step - 1, f"rows of {length}") for step, length in self.runs[0].lengths[1:]]
        return tuple(resumes[:_MOST_EVENTS] + (grown if len(grown) <= 3 else []))


def groups(field: Field) -> Iterator[tuple[str, str, Html]]:
    """Every group of charts that the runs have numbers for: its name in English and in Chinese, and the figures."""
    objectives = dict.fromkeys(name for run in field.runs for name in run.objectives)
    metrics = dict.fromkeys(name for run in field.runs for name in run.trials if is_metric(name))
    found = (
        ("loss", "损失", [_both(field, name, f"loss.{name}", _unit(field, name)) for name in objectives]),
        ("accuracy", "准确率", [_both(field, name, f"right.{name}", "answers that are right") for name in objectives]),
        ("weights", "权重", [_both(field, name, f"weight.{name}", "learned, of its loss") for name in objectives]),
        ("scores", "得分", [_both(field, name.partition(".")[2], name, "") for name in metrics]),
        ("descent", "优化", [_rate(field), _both(field, "gradient norm", "norm", "before clipping")]),
        ("speed", "速度", [_both(field, "tokens per second", "tokens_per_second", "")]),
    )
    for english, chinese, charts in found:
        drawn = [chart for chart in charts if any(curve.y.any() for curve in chart.curves)]
        if drawn:
            yield english, chinese, _figures(field, drawn)


def _figures(field: Field, charts: Sequence[Chart]) -> Html:
    across, events = field.across(), field.events()
    curves = [curve for chart in charts for curve in chart.curves]
    extra = [_RESUMED] if field.alone and field.runs[0].resumes else []
    shown = curves if field.alone else [_entry(curve) for curve in curves]
    pictures = (draw(chart, across, events) for chart in charts)
    return Html(legend(shown, extra) + tag("div", "charts", *pictures))


def _entry(curve: Curve) -> Curve:
    """Of several runs, a legend names each once: lines are training, dots are validation."""
    return Curve(curve.name, curve.colour, Look.LINE, curve.x, curve.y)


def _both(field: Field, title: str, name: str, about: str) -> Chart:
    """A number of the steps and of the trials."""
    curves = [curve for at in range(len(field.runs)) for curve in _curves(field, at, name)]
    share, counted = name.startswith("right."), name == "tokens_per_second"
    unit = Unit.SHARE if share else Unit.COUNT if counted else Unit.PLAIN
    return Chart(title, about, tuple(curves), unit, from_zero=share or counted or name == "norm")


def _curves(field: Field, at: int, name: str) -> Iterator[Curve]:
    run, label, alone = field.runs[at], field.labels[at], field.alone
    if name in run.training:
        raw = thinned(run.training[name])
        smooth = smoothed(raw)
        if alone:
            yield Curve("each step", at, Look.RAW, field.place(raw), raw.value)
        behind = not alone and name in run.trials
        look = Look.RAW if behind else Look.LINE
        yield Curve("training, smoothed" if alone else label, at, look, field.place(smooth), smooth.value)
    if name in run.trials:
        tried = thinned(run.trials[name])
        yield Curve("validation" if alone else label, at + alone, Look.POINTS, field.place(tried), tried.value)


def _unit(field: Field, objective: str) -> str:
    """A choice costs nats; an error of a number has the unit of that number."""
    return "mean of the answers" + (", in nats" if any(run.chooses(objective) for run in field.runs) else "")


def _rate(field: Field) -> Chart:
    """The learning rate, which needs no smoothing."""
    curves = []
    for at, run in enumerate(field.runs):
        if "rate" in run.training:
            series = thinned(run.training["rate"])
            name = "training, smoothed" if field.alone else field.labels[at]
            curves.append(Curve(name, at, Look.LINE, field.place(series), series.value))
    return Chart("learning rate", "", tuple(curves), from_zero=True)
