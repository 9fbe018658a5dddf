"""The charts of a run, or of several runs together.

What arrives: records. What leaves: groups of figures on one horizontal axis, with their legend.
What never happens here: mixing. Each chart holds one number; runs differ by colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unmask.reports.charts.curves import Chart, ChartEvent, Curve, CurveStyle, XAxis, draw_chart, legend, steps_axis
from unmask.reports.charts.downsample import smooth, thin, tokens_at
from unmask.reports.html.elements import Html, tag
from unmask.reports.pages.run.key_numbers import is_metric
from unmask.reports.read_log import MetricSeries, Reals
from unmask.reports.read_run import RunRecord
from unmask.reports.text.number_format import NumberFormat, format_count, tick_labels, ticks

_MOST_EVENTS = 12
_RESUMED = "taken up again"


@dataclass(frozen=True, slots=True)
class ChartContext:
    """Runs that are drawn together. Several are drawn over the tokens they saw, because their steps may differ."""

    runs: tuple[RunRecord, ...]
    labels: tuple[str, ...]

    @property
    def is_single_run(self) -> bool:
        """Whether there is one run only."""
        return len(self.runs) == 1

    @property
    def is_over_tokens(self) -> bool:
        """Whether the horizontal axis counts tokens."""
        return not self.is_single_run and all(run.num_tokens for run in self.runs)

    def x_values(self, series: MetricSeries) -> Reals:
        """Where the values of a series stand on the horizontal axis."""
        return series.tokens if self.is_over_tokens else series.step

    def x_axis(self) -> XAxis:
        """The horizontal axis. One run has its tokens written below its steps."""
        if self.is_over_tokens:
            high = max(run.num_tokens for run in self.runs)
            at = ticks(0.0, high, 5)
            return XAxis("tokens", high, at, tick_labels(at, NumberFormat.COUNT))
        high = float(max(run.num_steps for run in self.runs))
        return steps_axis(high, self._token_labels(high))

    def _token_labels(self, high: float) -> tuple[str, ...]:
        if not self.is_single_run or not self.runs[0].num_tokens:
            return ()
        run = self.runs[0]
        longest = max((*run.training.values(), *run.evals.values()), key=len)
        return tuple(map(format_count, tokens_at(longest, np.array(ticks(0.0, max(high, 1.0), 5)))))

    def events(self) -> tuple[ChartEvent, ...]:
        """Where a single run was taken up again, and where its rows changed their length."""
        if not self.is_single_run:
            return ()
        resumes = [ChartEvent(step, "") for step in self.runs[0].resume_steps]
        grown = [ChartEvent(step - 1, f"rows of {length}") for step, length in self.runs[0].lengths[1:]]
        return tuple(resumes[:_MOST_EVENTS] + (grown if len(grown) <= 3 else []))


def chart_groups(context: ChartContext) -> Iterator[tuple[str, str, Html]]:
    """Every group of charts that the runs have numbers for: its name in English and in Chinese, and the figures."""
    objectives = dict.fromkeys(name for run in context.runs for name in run.objectives)
    metrics = dict.fromkeys(name for run in context.runs for name in run.evals if is_metric(name))
    found = (
        (
            "loss",
            "损失",
            [_train_and_eval_chart(context, name, f"loss.{name}", _unit(context, name)) for name in objectives],
        ),
        (
            "accuracy",
            "准确率",
            [_train_and_eval_chart(context, name, f"accuracy.{name}", "answers that are right") for name in objectives],
        ),
        (
            "weights",
            "权重",
            [_train_and_eval_chart(context, name, f"weight.{name}", "learned, of its loss") for name in objectives],
        ),
        ("scores", "得分", [_train_and_eval_chart(context, name.partition(".")[2], name, "") for name in metrics]),
        (
            "descent",
            "优化",
            [_lr_chart(context), _train_and_eval_chart(context, "gradient norm", "grad_norm", "before clipping")],
        ),
        ("speed", "速度", [_train_and_eval_chart(context, "tokens per second", "tokens_per_second", "")]),
    )
    for english, chinese, charts in found:
        drawn = [chart for chart in charts if any(curve.y.any() for curve in chart.curves)]
        if drawn:
            yield english, chinese, _figures(context, drawn)


def _figures(field: ChartContext, charts: Sequence[Chart]) -> Html:
    across, events = field.x_axis(), field.events()
    curves = [curve for chart in charts for curve in chart.curves]
    extra = [_RESUMED] if field.is_single_run and field.runs[0].resume_steps else []
    shown = curves if field.is_single_run else [_entry(curve) for curve in curves]
    pictures = (draw_chart(chart, across, events) for chart in charts)
    return Html(legend(shown, extra) + tag("div", "charts", *pictures))


def _entry(curve: Curve) -> Curve:
    """Of several runs, a legend names each once: lines are training, dots are validation."""
    return Curve(curve.name, curve.color, CurveStyle.LINE, curve.x, curve.y)


def _train_and_eval_chart(field: ChartContext, title: str, name: str, about: str) -> Chart:
    """A number of the steps and of the trials."""
    curves = [curve for at in range(len(field.runs)) for curve in _curves(field, at, name)]
    share, counted = name.startswith("accuracy."), name == "tokens_per_second"
    unit = NumberFormat.SHARE if share else NumberFormat.COUNT if counted else NumberFormat.PLAIN
    return Chart(title, about, tuple(curves), unit, from_zero=share or counted or name == "grad_norm")


def _curves(field: ChartContext, at: int, name: str) -> Iterator[Curve]:
    run, label, alone = field.runs[at], field.labels[at], field.is_single_run
    if name in run.training:
        raw = thin(run.training[name])
        smoothed = smooth(raw)
        if alone:
            yield Curve("each step", at, CurveStyle.RAW, field.x_values(raw), raw.value)
        behind = not alone and name in run.evals
        look = CurveStyle.RAW if behind else CurveStyle.LINE
        yield Curve("training, smoothed" if alone else label, at, look, field.x_values(smoothed), smoothed.value)
    if name in run.evals:
        tried = thin(run.evals[name])
        yield Curve("validation" if alone else label, at + alone, CurveStyle.POINTS, field.x_values(tried), tried.value)


def _unit(field: ChartContext, objective: str) -> str:
    """A choice costs nats; an error of a number has the unit of that number."""
    return "mean of the answers" + (", in nats" if any(run.has_accuracy(objective) for run in field.runs) else "")


def _lr_chart(field: ChartContext) -> Chart:
    """The learning rate, which needs no smoothing."""
    curves = []
    for at, run in enumerate(field.runs):
        if "lr" in run.training:
            series = thin(run.training["lr"])
            name = "training, smoothed" if field.is_single_run else field.labels[at]
            curves.append(Curve(name, at, CurveStyle.LINE, field.x_values(series), series.value))
    return Chart("learning rate", "", tuple(curves), from_zero=True)
