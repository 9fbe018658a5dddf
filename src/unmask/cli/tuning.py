"""The flow of `tune`: encode, train, judge, save, tell.

What arrives: a `Tuning` and where it is computed. What leaves: a finished folder and a table of scores.
What never happens here: learning or judging; see `unmask.tune`, `unmask.train` and `unmask.evaluate`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from rich.table import Table

from unmask.cli.progress import progress
from unmask.cli.terminal import console, interruptible, say
from unmask.cli.watching import counting
from unmask.evaluate.metrics import NAMES, told
from unmask.evaluate.scoring import fit, floor, scores
from unmask.nets.mix import LayerMix
from unmask.train.checkpoint import CHECKPOINTS, discard
from unmask.train.folder import begin, check, finish, finished, hold
from unmask.train.processes import Processes
from unmask.train.record import Line
from unmask.train.run import Run
from unmask.tune.asking_answers import SpanAnswer, save_submission
from unmask.tune.course import Labelled
from unmask.tune.job import Job
from unmask.tune.outputs.span import Span
from unmask.tune.policy import trained
from unmask.tune.saved import PREDICTIONS, Root, Tuned, finite, read_task, save_answers, save_tuned
from unmask.tune.tuning import Tuning, digest_of


def work(tuning: Tuning, run: Run, processes: Processes, out: Path, source: Path) -> None:
    """Tune in a folder that nobody else writes to. The first process speaks and saves for all."""
    if not processes.leads:
        _follow(tuning, run, processes, out)
        return
    with hold(out), interruptible(out):
        description = tuning.describe()
        check(out, description)
        if finished(out):
            say(f"{out} is tuned already.", beside=True)
        else:
            course = _lay_out(tuning)
            begin(out, description)  # only now: a row that cannot be encoded leaves no folder behind
            processes.wait()
            _train(tuning, course, run, processes, out, source)
        _clear(out)
        show(out, tuning.job)


def _follow(tuning: Tuning, run: Run, processes: Processes, out: Path) -> None:
    """What all processes but the first do: train along, unless there is nothing left to do."""
    if not finished(out):
        course = tuning.lay_out()
        processes.wait()
        tuning.train(course, run, processes, out)


def _train(tuning: Tuning, course: Labelled, run: Run, processes: Processes, out: Path, source: Path) -> None:
    began = time.monotonic()
    with progress(f"tuning {tuning.source} ({tuning.settings.start})", course.steps(tuning.settings.epochs)) as tick:
        hear = counting(tick, Remark())
        tuned = tuning.train(course, run, processes, out, [hear], lambda rows: tick(0, f"{rows:,} rows read"))
    _finish(tuning, tuned, course, out, Root(tuning.source, str(source.resolve()), digest_of(tuning.model)), began)


def _finish(tuning: Tuning, tuned: Tuned, course: Labelled, out: Path, root: Root, began: float) -> None:
    """Let the network answer what it is judged by, and save it with its answers and scores."""
    judged, learner, counts = tuning.job.judged, tuned.learner, trained(tuned.learner, tuning.policy)
    output, answers = fit(tuned.output, judged, tuned.output.answer(learner, judged, course.judged))
    found = scores(output, judged, answers)
    facts = {
        "metrics": finite(found),
        "metric": next(iter(found)),  # the one to compare by
        "chance": finite(floor(output, tuning.job.learned, judged)),
        "source": tuning.source,
        "settings": tuning.describe()["settings"],
        "parameters": {"trained": counts.moving, "all": counts.all},
        "seconds": round(time.monotonic() - began, 1),
        "rows": {"learned": len(tuning.job.learned), "judged": len(judged), "cut": _cut(course)},
    }
    save_answers(out, judged, answers)
    if isinstance(output, Span):
        save_submission(out, cast(Sequence[SpanAnswer], answers))
    save_tuned(replace(tuned, output=output), out, root, facts)
    layers = list(learner.mix.shares()) if isinstance(learner.mix, LayerMix) else []
    finish(out, {"metrics": facts["metrics"], "layers": layers})


def _lay_out(tuning: Tuning) -> Labelled:
    """Say what was read, encode the questions, and say how many were too long."""
    for sentence in tuning.job.told:
        say(sentence, beside=True)
    with progress("encoding", len(tuning.job.learned) + len(tuning.job.judged)) as tick:
        course = tuning.lay_out(tick)
    rows = len(course.learned.rows) + len(course.judged.rows)
    if _cut(course):
        long = f"{_cut(course):,} of {rows:,} rows have more than {course.length} tokens; their ends were cut off"
        say(long, beside=True)
    for note in (*course.learned.notes, *course.judged.notes):
        say(note, beside=True)
    steps = course.steps(tuning.settings.epochs)
    few = "; so few teach little: try more --epochs" if steps < _FEW else ""
    say(f"{steps:,} steps with {course.batch:,} questions each{few}", beside=True)
    return course


_FEW = 50
"""Fewer steps than this get a hint."""


def _cut(course: Labelled) -> int:
    return course.learned.rows.cut + course.judged.rows.cut


class Remark:
    """What the lines of a record say, in a few words: the loss now, and how the last trial went."""

    def __init__(self) -> None:
        self.judged = ""

    def __call__(self, line: Line) -> str:
        """Hear a line."""
        loss = ", ".join(f"loss {value:.3f}" for value in line.get("loss", {}).values())
        if line["kind"] == "trial":
            right = max(line["right"].values())
            self.judged = f"dev: {right:.1%} right" if right else f"dev: {loss}"
            return self.judged
        return ", ".join(filter(None, (loss, self.judged)))


def show(out: Path, job: Job) -> None:
    """Print the scores of a finished folder."""
    found = read_task(out)
    values = {name: float("nan") if value is None else value for name, value in found["metrics"].items()}
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(f"{len(job.judged):,} row{'' if len(job.judged) == 1 else 's'} judged by")
    table.add_column("score", justify="right")
    for name, value in told(values, getattr(job.output, "labels", ())):
        table.add_row(name, value)
    console().print(table)
    guess = found["chance"].get(found["metric"])
    if guess is not None:
        who = "The source, copied," if found["kind"] == "write" else "A guess that knows nothing of the text"
        say(f"{who} would have: {NAMES[found['metric']]} {guess:.4f}.")
    parameters = found["parameters"]
    share = parameters["trained"] / parameters["all"]
    say(f"{parameters['trained']:,} of {parameters['all']:,} parameters were trained ({share:.2%}).")
    say(f"The tuned network is in {out}, its answers in {out / PREDICTIONS}.")


def _clear(out: Path) -> None:
    """Checkpoints are for going on. What is finished is in its own files."""
    if (out / CHECKPOINTS).is_dir():
        discard(out / CHECKPOINTS)
