"""The charts of a run, or of several runs together: groups with a common horizontal axis and a legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from unmask.reports.charts.curves import Chart, ChartEvent, Curve, CurveStyle, XAxis, draw_chart, legend, steps_axis
from unmask.reports.html import join
from unmask.reports.pages.run.key_numbers import is_metric
from unmask.reports.read_log import MetricSeries, Reals, smooth, thin, tokens_at
from unmask.reports.read_run import RunRecord
from unmask.reports.text.number_format import NumberFormat, format_count, tick_labels, ticks

_MOST_EVENTS = 12
_RESUMED = "resumed"


@dataclass(frozen=True, slots=True)
class ChartContext:
    """Runs in common charts. Several runs are drawn over tokens, because their batch sizes may differ."""

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
        """The horizontal values of a series."""
        return series.tokens if self.is_over_tokens else series.step

    def x_axis(self) -> XAxis:
        """The horizontal axis; a single run has its tokens below its steps."""
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
        """Resumes and changes of the row length of a single run."""
        if not self.is_single_run:
            return ()
        resumes = [ChartEvent(step, "") for step in self.runs[0].resume_steps]
        grown = [ChartEvent(step - 1, f"rows of {length}") for step, length in self.runs[0].lengths[1:]]
        return tuple(resumes[:_MOST_EVENTS] + (grown if len(grown) <= 3 else []))


def chart_groups(context: ChartContext) -> Iterator[tuple[str, str, Markup]]:
    """The groups of charts with values: name in English and in Chinese, and the figures."""
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
            [
                _train_and_eval_chart(context, name, f"accuracy.{name}", "fraction of correct answers")
                for name in objectives
            ],
        ),
        (
            "weights",
            "权重",
            [
                _train_and_eval_chart(context, name, f"weight.{name}", "learned weight of the loss")
                for name in objectives
            ],
        ),
        ("scores", "得分", [_train_and_eval_chart(context, name.partition(".")[2], name, "") for name in metrics]),
        (
            "optimizer",
            "优化",
            [_lr_chart(context), _train_and_eval_chart(context, "gradient norm", "grad_norm", "before clipping")],
        ),
        ("speed", "速度", [_train_and_eval_chart(context, "tokens per second", "tokens_per_second", "")]),
    )
    for english, chinese, charts in found:
        drawn = [chart for chart in charts if any(curve.y.any() for curve in chart.curves)]
        if drawn:
            yield english, chinese, _figures(context, drawn)


def _figures(context: ChartContext, charts: Sequence[Chart]) -> Markup:
    across, events = context.x_axis(), context.events()
    curves = [curve for chart in charts for curve in chart.curves]
    extra = [_RESUMED] if context.is_single_run and context.runs[0].resume_steps else []
    shown = curves if context.is_single_run else [_entry(curve) for curve in curves]
    pictures = (draw_chart(chart, across, events) for chart in charts)
    return legend(shown, extra) + Markup('<div class="charts">{}</div>').format(join(pictures))


def _entry(curve: Curve) -> Curve:
    """The legend entry of a run among several: one line for training and validation."""
    return Curve(curve.name, curve.color, CurveStyle.LINE, curve.x, curve.y)


def _train_and_eval_chart(context: ChartContext, title: str, name: str, about: str) -> Chart:
    """A number of the steps and of the evaluations."""
    curves = [curve for at in range(len(context.runs)) for curve in _curves(context, at, name)]
    share, counted = name.startswith("accuracy."), name == "tokens_per_second"
    unit = NumberFormat.SHARE if share else NumberFormat.COUNT if counted else NumberFormat.PLAIN
    return Chart(title, about, tuple(curves), unit, from_zero=share or counted or name == "grad_norm")


def _curves(context: ChartContext, at: int, name: str) -> Iterator[Curve]:
    run, label, alone = context.runs[at], context.labels[at], context.is_single_run
    if name in run.training:
        raw = thin(run.training[name])
        smoothed = smooth(raw)
        if alone:
            yield Curve("each step", at, CurveStyle.RAW, context.x_values(raw), raw.value)
        behind = not alone and name in run.evals
        look = CurveStyle.RAW if behind else CurveStyle.LINE
        yield Curve("training, smoothed" if alone else label, at, look, context.x_values(smoothed), smoothed.value)
    if name in run.evals:
        tried = thin(run.evals[name])
        yield Curve(
            "validation" if alone else label, at + alone, CurveStyle.POINTS, context.x_values(tried), tried.value
        )


def _unit(context: ChartContext, objective: str) -> str:
    """Nats for a choice; the unit of the number for a regression."""
    return "mean of the answers" + (", in nats" if any(run.has_accuracy(objective) for run in context.runs) else "")


def _lr_chart(context: ChartContext) -> Chart:
    """The learning rate, without smoothing."""
    curves = []
    for at, run in enumerate(context.runs):
        if "lr" in run.training:
            series = thin(run.training["lr"])
            name = "training, smoothed" if context.is_single_run else context.labels[at]
            curves.append(Curve(name, at, CurveStyle.LINE, context.x_values(series), series.value))
    return Chart("learning rate", "", tuple(curves), from_zero=True)
