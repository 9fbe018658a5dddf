"""The flow of `tune`: encode, train, judge, save, tell.

What arrives: a `FullTune` and where it is computed. What leaves: a finished folder and a table of scores.
What never happens here: learning or judging; see `unmask.tune`, `unmask.train` and `unmask.evaluate`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.table import Table

from unmask.cli.progress import progress
from unmask.cli.terminal import console, interruptible, say
from unmask.evaluate.metrics import Scores, classification, regression, told
from unmask.records import Fact
from unmask.train.checkpoint import CHECKPOINTS, discard
from unmask.train.folder import begin, check, finish, finished, hold
from unmask.train.processes import Processes
from unmask.train.record import Line
from unmask.train.run import Run
from unmask.tune.course import Labelled
from unmask.tune.full import FullTune
from unmask.tune.job import Job
from unmask.tune.predict import Said, answer
from unmask.tune.row_task import amounts
from unmask.tune.saved import PREDICTIONS, finite, read_task, save_tuned


def work(full: FullTune, run: Run, processes: Processes, out: Path) -> None:
    """Tune in a folder that nobody else writes to. The first process speaks and saves for all."""
    if not processes.leads:
        _follow(full, run, processes, out)
        return
    with hold(out), interruptible(out):
        description = full.describe()
        check(out, description)
        if finished(out):
            say(f"{out} is tuned already.", beside=True)
        else:
            course = _lay_out(full)
            begin(out, description)  # only now: a row that cannot be encoded leaves no folder behind
            processes.wait()
            _train(full, course, run, processes, out)
        _clear(out)
        show(out, full.job)


def _follow(full: FullTune, run: Run, processes: Processes, out: Path) -> None:
    """What all processes but the first do: train along, unless there is nothing left to do."""
    if not finished(out):
        course = full.lay_out()
        processes.wait()
        full.train(course, run, processes, out)


def _train(full: FullTune, course: Labelled, run: Run, processes: Processes, out: Path) -> None:
    with progress(f"tuning {full.source} ({full.settings.start})", course.steps(full.settings.epochs)) as tick:
        remark = Remark()

        def hear(line: Line) -> None:
            if line["kind"] == "start" and line["step"]:
                tick.note(f"going on from step {line['step']:,}")
            tick(line["step"], remark(line))

        tuned = full.train(course, run, processes, out, [hear])
    said = answer(tuned.learner, tuned.task, course.judged.rows)
    facts = {
        "metrics": finite(scores(full.job, said)),
        "source": full.source,
        "settings": full.describe()["settings"],
        "rows": {"learned": len(course.learned), "judged": len(course.judged), "cut": _cut(course)},
    }
    save_tuned(tuned, out, full.job.judged, said, facts)
    finish(out, {"metrics": facts["metrics"]})


def _lay_out(full: FullTune) -> Labelled:
    """Say what was read, encode the rows, and say how many were too long."""
    for sentence in full.job.told:
        say(sentence, beside=True)
    rows = len(full.job.learned) + len(full.job.judged)
    with progress("encoding", rows) as tick:
        course = full.lay_out(tick)
    if _cut(course):
        long = f"{_cut(course):,} of {rows:,} rows have more than {course.length} tokens; their ends were cut off"
        say(long, beside=True)
    return course


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


def scores(job: Job, said: Said) -> Scores:
    """How good answers to the rows that are judged by are."""
    truth = said.task.truth(job.judged)
    if isinstance(truth, Fact):
        return classification(truth.value, said.classes, len(said.task.labels))
    return regression(amounts(job.judged), said.amounts)


def show(out: Path, job: Job) -> None:
    """Print the scores of a finished folder."""
    found = read_task(out)
    values = {name: float("nan") if value is None else value for name, value in found["metrics"].items()}
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(f"{len(job.judged):,} rows judged by")
    table.add_column("score", justify="right")
    for name, value in told(values, job.task.labels):
        table.add_row(name, value)
    console().print(table)
    if job.task.labels:
        label, often = Counter(job.judged.truths).most_common(1)[0]
        say(f"Always saying {label} would have an accuracy of {often / len(job.judged):.4f}.")
    say(f"The tuned network is in {out}, its answers in {out / PREDICTIONS}.")


def _clear(out: Path) -> None:
    """Checkpoints are for going on. What is finished is in its own files."""
    if (out / CHECKPOINTS).is_dir():
        discard(out / CHECKPOINTS)
