"""The figures of a run that one looks for first, and the table that holds several runs side by side.

What arrives: records. What leaves: named numbers in words.
What never happens here: a figure without its source. Where there was no validation, the word says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from unmask.report.figures import lasted, rounded, shared, short
from unmask.report.run_about import state_of, title_of
from unmask.report.run_record import RunRecord

_SAYS_TOKENS = "mlm"
"""The objective whose loss is one over the vocabulary, so that it has a perplexity."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its name, and a word beside it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Best:
    """The lowest validation loss of an objective, where it was, and what share of the answers was right there."""

    step: int
    loss: float
    right: float


def best(record: RunRecord, objective: str) -> Best | None:
    """The best moment of an objective; nothing if it was never tried."""
    losses, rights = record.trials.get(f"loss.{objective}"), record.trials.get(f"right.{objective}")
    if losses is None:
        return None
    at = int(losses.value.argmin())
    step = losses.step[at]
    right = float(rights.value[rights.step == step].sum()) if rights is not None else 0.0
    return Best(int(step), float(losses.value[at]), right)


def figures(record: RunRecord) -> Iterator[Figure]:
    """Everything that is worth a glance."""
    for objective in record.objectives:
        yield from _learned(record, objective)
    yield from _metrics(record)
    yield from (Figure(name, _score(score), "of the finished network") for name, score in record.scores.items())
    if record.tokens:
        yield Figure("tokens seen", short(record.tokens), _epochs(record))
    yield from _spent(record)
    for name, words in (("padding", "padding"), ("predicted", "predicted tokens")):
        if name in record.training and record.mean(name):
            yield Figure(words, shared(record.mean(name)), "of all places" if name == "padding" else "of all tokens")
    if record.starts:
        yield _device(record)


def compared(records: Sequence[RunRecord]) -> tuple[list[str], list[list[str]]]:
    """A table of several runs: its columns, and a row of cells for each run. What no run has is left out."""
    objectives = dict.fromkeys(name for record in records for name in record.objectives)
    metrics = dict.fromkeys(name for record in records for name in record.trials if is_metric(name))
    head = ["run", "parameters", "steps", "tokens"]
    head += [word for name in objectives for word in (f"{name} loss", f"{name} right")]
    scores = dict.fromkeys(name for record in records for name in record.scores)
    head += [*(name.partition(".")[2] for name in metrics), *scores]
    rows = [_row(record, list(objectives), list(metrics), list(scores)) for record in records]
    columns = [*head, "time", "tokens/s", "state"]
    kept = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    return [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]


def is_metric(name: str) -> bool:
    """Whether a number of a trial is a score of a task, neither a loss nor a plain count of right answers."""
    return "." in name and name.partition(".")[0] not in ("loss", "right")


def _row(record: RunRecord, objectives: list[str], metrics: list[str], scores: list[str]) -> list[str]:
    parameters = record.head.get("parameters")
    cells = [title_of(record), short(parameters) if parameters else "", f"{record.steps:,}"]
    cells.append(short(record.tokens) if record.tokens else "")
    for objective in objectives:
        found = best(record, objective)
        right = shared(found.right) if found and record.chooses(objective) else ""
        cells += [f"{found.loss:.3f}" if found else "", right]
    cells += [_score(record.trials[name].value[-1]) if name in record.trials else "" for name in metrics]
    cells += [_score(record.scores[name]) if name in record.scores else "" for name in scores]
    spent = record.ended("seconds")
    return [
        *cells,
        lasted(spent) if spent else "",
        _speed(record),
        "finished" if record.finished else state_of(record).partition(",")[0],
    ]


def _learned(record: RunRecord, objective: str) -> Iterator[Figure]:
    found = best(record, objective)
    if found is None:
        yield Figure(f"{objective} loss", f"{record.ended(f'loss.{objective}'):.3f}", "last step; never validated")
        return
    where = f"at step {found.step:,}"
    if objective == _SAYS_TOKENS:
        where = f"perplexity {rounded(exp(min(found.loss, 50.0)))}, {where}"
    yield Figure(f"{objective} loss", f"{found.loss:.3f}", f"best validation; {where}")
    if record.chooses(objective):
        yield Figure(f"{objective} right", shared(found.right), f"of the validation, {where.split(', ')[-1]}")


def _metrics(record: RunRecord) -> Iterator[Figure]:
    for name, series in record.trials.items():
        if is_metric(name):
            top = int(series.value.argmax())
            most = f"highest {_score(series.value[top])} at step {series.step[top]:,.0f}"
            yield Figure(name.partition(".")[2], _score(series.value[-1]), f"last validation; {most}")


def _spent(record: RunRecord) -> Iterator[Figure]:
    if record.ended("seconds"):
        resumes = len(record.resumes)
        times = "once" if resumes == 1 else f"{resumes} times"
        yield Figure("time", lasted(record.ended("seconds")), f"resumed {times}" if resumes else "in one go")
    if _speed(record):
        yield Figure("tokens per second", _speed(record), "median of the steps")


def _speed(record: RunRecord) -> str:
    series = record.training.get("tokens_per_second")
    return short(float(np.median(series.value))) if series is not None else ""


def _device(record: RunRecord) -> Figure:
    """Where a run ran last, and if it moved, that it did."""
    last = record.starts[-1]
    many = int(last.get("processes", 1))
    moved = len({start.get("device") for start in record.starts}) > 1
    notes = [str(last.get("precision", "")), f"torch {last['torch']}" if "torch" in last else ""]
    notes += ["compiled" if last.get("compile") else "", "moved on the way" if moved else ""]
    return Figure("device", f"{many} × {last.get('device', '?')}", ", ".join(filter(None, notes)))


def _epochs(record: RunRecord) -> str:
    corpus = record.head.get("corpus")
    held = corpus.get("tokens", 0) if isinstance(corpus, dict) else 0
    return f"{rounded(record.tokens / held)} × the corpus" if held else ""


def _score(value: float) -> str:
    return f"{value:.4f}"
