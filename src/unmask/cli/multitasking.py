"""The flow of `multitask`: encode, train together, judge, save; then perhaps each task alone; tell.

What arrives: a `Together` and where it is computed. What leaves: finished folders and a table of scores.
What never happens here: learning or judging; see `unmask.tune`, `unmask.train` and `unmask.evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from unmask.cli.multitask_scores import show
from unmask.cli.progress import progress
from unmask.cli.terminal import interruptible, say
from unmask.cli.watching import counting
from unmask.errors import InputError
from unmask.evaluate.metrics import NAMES
from unmask.evaluate.scoring import scores
from unmask.export.tuned import open_tuned
from unmask.train.checkpoint import CHECKPOINTS, discard
from unmask.train.folder import begin, check, finish, finished, hold
from unmask.train.learner import Learner
from unmask.train.processes import Processes
from unmask.train.record import Line
from unmask.train.run import Run
from unmask.tune.course import Labelled
from unmask.tune.many_course import Many
from unmask.tune.many_file import Task
from unmask.tune.many_saved import TRUNK, save_head, save_trunk
from unmask.tune.many_tuning import Together, trunk_of
from unmask.tune.saved import Root, finite, save_answers, save_tuned
from unmask.tune.tuning import digest_of

EACH = "each"
"""The folder of what was tuned alone afterwards."""
Keep: TypeAlias = Callable[[Together, Learner, Many, Path], dict[str, object]]
"""Saves what was learned in a folder, and returns the scores by task."""


def work(together: Together, then_each: float, run: Run, processes: Processes, out: Path) -> None:
    """Tune all tasks together, then each alone if that is wished for. The first process speaks and saves for all."""
    for task in together.tasks:
        if task.metric and task.metric not in NAMES:
            raise InputError(f"Task {task.name!r}: there is no score {task.metric!r}; known are {', '.join(NAMES)}.")
    with interruptible(out) if processes.leads else nullcontext():
        carry_out(together, run, processes, out, _keep_shared)
        for task in together.tasks if then_each else ():
            processes.wait()  # until the folder is there for all
            alone = together.then(task, open_tuned(out / task.name), then_each)
            once = replace(run, trials=max(1, round(then_each)))
            carry_out(alone, once, processes, out / EACH / task.name, _keep_whole)
        if processes.leads:
            show(out, together.tasks, out / EACH)


def carry_out(together: Together, run: Run, processes: Processes, folder: Path, keep: Keep) -> None:
    """One run in a folder that nobody else writes to, unless it is finished already."""
    if not processes.leads:
        if not finished(folder):
            course = together.lay_out()
            processes.wait()
            together.train(course, run, processes, folder)
        return
    with hold(folder):
        description = together.describe()
        check(folder, description)
        if finished(folder):
            say(f"{folder} is tuned already.", beside=True)
        else:
            course = _lay_out(together)
            begin(folder, description)  # only now: a row that cannot be encoded leaves no folder behind
            processes.wait()
            learner = _train(together, course, run, processes, folder)
            finish(folder, {"metrics": keep(together, learner, course, folder)})
        if (folder / CHECKPOINTS).is_dir():
            discard(folder / CHECKPOINTS)  # what is finished is in its own files


def _lay_out(together: Together) -> Many:
    """Say what was read, encode the questions, and say how many were too long."""
    for task in together.tasks if not together.heads else ():  # who goes on has heard it
        for sentence in task.job.told:
            say(f"{task.name}: {sentence}", beside=True)
    total = sum(len(task.job.learned) + len(task.job.judged) for task in together.tasks)
    with progress("encoding", total) as tick:
        course = together.lay_out(tick)
    for part in course.parts:
        if _cut(part):
            say(f"{part.place}: {_cut(part):,} rows have more than {part.length} tokens; their ends were cut off", True)
    return course


def _train(together: Together, course: Many, run: Run, processes: Processes, folder: Path) -> Learner:
    names = ", ".join(task.name for task in together.tasks)
    with progress(f"tuning {together.source}: {names}", course.steps) as tick:
        return together.train(course, run, processes, folder, [counting(tick, remark)])


def remark(line: Line) -> str:
    """What a line of the record says, in a few words that fit beside a bar."""
    losses = line.get("loss", {})
    if line["kind"] == "trial":
        return f"dev: mean loss {sum(losses.values()) / len(losses):.3f}"
    return ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items())


def _keep_shared(together: Together, learner: Learner, course: Many, folder: Path) -> dict[str, object]:
    """The trunk once, and a folder for the head of each task."""
    trunk = trunk_of(learner)
    found: dict[str, object] = {}
    save_trunk(trunk, together.tokenizer, folder / TRUNK, {"source": together.source})
    for task, part in zip(together.tasks, course.parts, strict=True):
        facts = _judge(together, learner, task, part, folder / task.name)
        save_head(together.tuned(learner, task), folder / task.name, trunk, facts)
        found[task.name] = facts["metrics"]
    return found


def _keep_whole(together: Together, learner: Learner, course: Many, folder: Path) -> dict[str, object]:
    """The one task as `unmask tune` would leave it."""
    (task,), (part,) = together.tasks, course.parts
    facts = _judge(together, learner, task, part, folder)
    root = Root(TRUNK, f"../../{TRUNK}", digest_of(together.model))
    save_tuned(together.tuned(learner, task), folder, root, facts)
    return {task.name: facts["metrics"]}


def _judge(together: Together, learner: Learner, task: Task, part: Labelled, folder: Path) -> dict[str, object]:
    """Let a task be answered, write the answers, and return what is known about it."""
    job = task.job
    folder.mkdir(exist_ok=True)
    answers = job.output.answer(learner, job.judged, part.judged)
    save_answers(folder, job.judged, answers)
    found = scores(job.output, job.judged, answers)
    return {
        "metrics": finite(found),
        "metric": task.metric if task.metric in found else next(iter(found)),
        "source": together.source,
        "settings": together.describe()["settings"],
        "rows": {"learned": len(job.learned), "judged": len(job.judged), "cut": _cut(part)},
    }


def _cut(part: Labelled) -> int:
    return part.learned.rows.cut + part.judged.rows.cut
