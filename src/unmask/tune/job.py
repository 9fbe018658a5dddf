"""A task as a user gives it: one file to learn from, perhaps one to be judged by, and what is read from them.

What arrives: paths, and which fields the user named. What leaves: a `Job` that has passed every check which needs no
network.
What never happens here: torch. A wrong label is found before a network is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unmask.errors import InputError
from unmask.shards.files import digest_of
from unmask.tune.fields import NO_CHOICE, Choice, Fields, find_fields
from unmask.tune.row_task import Kind, RowTask, guess_kind, learn_task, shares
from unmask.tune.sheet import Sheet, pick, set_aside
from unmask.tune.task_file import read_task_file

ASIDE = 0.1
"""The share of the texts that is judged by where no second file is given."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is learned from, what is judged by, and what is asked."""

    fields: Fields
    task: RowTask
    learned: Sheet
    judged: Sheet
    files: tuple[tuple[str, str], ...]
    """Name and digest of every file."""

    @property
    def told(self) -> Iterator[str]:
        """What was read, in sentences."""
        yield f"{self.learned.name}: {len(self.learned):,} rows to learn from; {self.fields}"
        if self.task.kind is Kind.REGRESS:
            yield f"a number is asked for, {self.task.mean:.3g} on average, give or take {self.task.spread:.3g}"
        else:
            yield f"{len(self.task.labels)} classes: {shares(self.learned)}"
        if len(self.files) == 1:
            yield f"{len(self.judged):,} of its rows (1 text in {1 / ASIDE:.0f}) were set aside to judge by"
        else:
            yield f"{self.judged.name}: {len(self.judged):,} rows to judge by"
        both = self.judged.shared_with(self.learned)
        if both:
            yield f"note: {both:,} of the rows to judge by have a text that is also learned from"


def read_job(train: Path, dev: Path | None, choice: Choice = NO_CHOICE, kind: Kind | None = None, seed: int = 0) -> Job:
    """Read a task. Without a file to judge by, one text in ten is set aside; without a kind, the labels decide."""
    table = read_task_file(train, choice.numbered)
    fields = find_fields(table, choice)
    whole = pick(table, fields)
    task = learn_task(whole, kind or guess_kind(whole))
    if dev is None:
        learned, judged = set_aside(whole, ASIDE, seed)
    else:
        learned, judged = whole, _judged(dev, choice, fields)
    task.truth(judged)  # an unknown label is refused now, before anything is opened or made
    files = tuple((path.name, digest_of(path)) for path in (train, dev) if path is not None)
    return Job(fields, task, learned, judged, files)


def _judged(dev: Path, choice: Choice, fields: Fields) -> Sheet:
    """The rows to judge by, from the same fields."""
    table = read_task_file(dev, choice.numbered)
    missing = [name for name in (*fields.texts, fields.label) if name not in table.columns]
    if missing:
        raise InputError(
            f"{table.rows[0].where}: there is no field {missing[0]!r}, which the training file has. "
            "Both files need the same fields."
        )
    return pick(table, fields)
