"""Key numbers of a run, and the table of several runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from unmask.reports.pages.run.about import state_of, title_of
from unmask.reports.read_run import RunRecord
from unmask.reports.text.number_format import format_count, format_duration, format_number, format_percent

_PREDICTS_TOKENS = "mlm"
"""The objective with a loss over the vocabulary, which has a perplexity."""


@dataclass(frozen=True, slots=True)
class KeyNumber:
    """A number with its name and a note."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class BestValue:
    """The lowest validation loss of an objective, with its step and its accuracy."""

    step: int
    loss: float
    accuracy: float


def best_value(record: RunRecord, objective: str) -> BestValue | None:
    """The best evaluation of an objective; `None` without evaluations."""
    losses, rights = record.evals.get(f"loss.{objective}"), record.evals.get(f"accuracy.{objective}")
    if losses is None:
        return None
    at = int(losses.value.argmin())
    step = losses.step[at]
    right = float(rights.value[rights.step == step].sum()) if rights is not None else 0.0
    return BestValue(int(step), float(losses.value[at]), right)


def key_numbers(record: RunRecord) -> Iterator[KeyNumber]:
    """All key numbers."""
    for objective in record.objectives:
        yield from _learned(record, objective)
    yield from _metrics(record)
    yield from (KeyNumber(name, _score(score), "of the finished network") for name, score in record.scores.items())
    if record.num_tokens:
        yield KeyNumber("tokens seen", format_count(record.num_tokens), _epochs(record))
    yield from _spent(record)
    for name, words in (("padding_fraction", "padding"), ("masked_fraction", "predicted tokens")):
        if name in record.training and record.mean(name):
            yield KeyNumber(
                words,
                format_percent(record.mean(name)),
                "of all places" if name == "padding_fraction" else "of all tokens",
            )
    if record.starts:
        yield _device(record)


def comparison_table(records: Sequence[RunRecord]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the table of several runs; empty columns are left out."""
    objectives = dict.fromkeys(name for record in records for name in record.objectives)
    metrics = dict.fromkeys(name for record in records for name in record.evals if is_metric(name))
    head = ["run", "parameters", "steps", "tokens"]
    head += [word for name in objectives for word in (f"{name} loss", f"{name} right")]
    scores = dict.fromkeys(name for record in records for name in record.scores)
    head += [*(name.partition(".")[2] for name in metrics), *scores]
    rows = [_row(record, list(objectives), list(metrics), list(scores)) for record in records]
    columns = [*head, "time", "tokens/s", "state"]
    kept = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    return [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]


def is_metric(name: str) -> bool:
    """Whether a number of an evaluation is a metric of a task, neither loss nor accuracy."""
    return "." in name and name.partition(".")[0] not in ("loss", "accuracy")


def _row(record: RunRecord, objectives: list[str], metrics: list[str], scores: list[str]) -> list[str]:
    parameters = record.metadata.get("parameters")
    cells = [title_of(record), format_count(parameters) if parameters else "", f"{record.num_steps:,}"]
    cells.append(format_count(record.num_tokens) if record.num_tokens else "")
    for objective in objectives:
        found = best_value(record, objective)
        right = format_percent(found.accuracy) if found and record.has_accuracy(objective) else ""
        cells += [f"{found.loss:.3f}" if found else "", right]
    cells += [_score(record.evals[name].value[-1]) if name in record.evals else "" for name in metrics]
    cells += [_score(record.scores[name]) if name in record.scores else "" for name in scores]
    spent = record.last_value("seconds")
    return [
        *cells,
        format_duration(spent) if spent else "",
        _speed(record),
        "finished" if record.is_finished else state_of(record).partition(",")[0],
    ]


def _learned(record: RunRecord, objective: str) -> Iterator[KeyNumber]:
    found = best_value(record, objective)
    if found is None:
        yield KeyNumber(
            f"{objective} loss", f"{record.last_value(f'loss.{objective}'):.3f}", "last step; never validated"
        )
        return
    where = f"at step {found.step:,}"
    if objective == _PREDICTS_TOKENS:
        where = f"perplexity {format_number(exp(min(found.loss, 50.0)))}, {where}"
    yield KeyNumber(f"{objective} loss", f"{found.loss:.3f}", f"best validation; {where}")
    if record.has_accuracy(objective):
        yield KeyNumber(
            f"{objective} right", format_percent(found.accuracy), f"of the validation, {where.split(', ')[-1]}"
        )


def _metrics(record: RunRecord) -> Iterator[KeyNumber]:
    for name, series in record.evals.items():
        if is_metric(name):
            top = int(series.value.argmax())
            most = f"highest {_score(series.value[top])} at step {series.step[top]:,.0f}"
            yield KeyNumber(name.partition(".")[2], _score(series.value[-1]), f"last validation; {most}")


def _spent(record: RunRecord) -> Iterator[KeyNumber]:
    if record.last_value("seconds"):
        resumes = len(record.resume_steps)
        times = "once" if resumes == 1 else f"{resumes} times"
        yield KeyNumber(
            "time", format_duration(record.last_value("seconds")), f"resumed {times}" if resumes else "in one go"
        )
    if _speed(record):
        yield KeyNumber("tokens per second", _speed(record), "median of the steps")


def _speed(record: RunRecord) -> str:
    series = record.training.get("tokens_per_second")
    return format_count(float(np.median(series.value))) if series is not None else ""


def _device(record: RunRecord) -> KeyNumber:
    """The device of the last start, and whether it changed."""
    last = record.starts[-1]
    many = int(last.get("processes", 1))
    moved = len({start.get("device") for start in record.starts}) > 1
    notes = [str(last.get("precision", "")), f"torch {last['torch']}" if "torch" in last else ""]
    notes += ["compiled" if last.get("compile") else "", "device changed" if moved else ""]
    return KeyNumber("device", f"{many} × {last.get('device', '?')}", ", ".join(filter(None, notes)))


def _epochs(record: RunRecord) -> str:
    corpus = record.metadata.get("corpus")
    held = corpus.get("tokens", 0) if isinstance(corpus, dict) else 0
    return f"{format_number(record.num_tokens / held)} × the corpus" if held else ""


def _score(value: float) -> str:
    return f"{value:.4f}"
