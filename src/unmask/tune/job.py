"""A task as a user gives it: one file to learn from, perhaps one to be judged by, and what is read from them.

What arrives: paths, and what the user said about them. What leaves: a `Job` that has passed every check which needs no
network.
What never happens here: torch. A wrong label is found before a network is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from unmask.shards.files import digest_of
from unmask.tune import asking, choice_rows, label_rows, rank_rows, rows, tagging_files, texts
from unmask.tune.asking_rows import asks_for_spans
from unmask.tune.choice_rows import asks_to_choose
from unmask.tune.fields import Choice
from unmask.tune.glance import first_row
from unmask.tune.label_rows import asks_for_labels
from unmask.tune.output import Kind, Output
from unmask.tune.outputs.choose import Choose
from unmask.tune.outputs.classify import Classify
from unmask.tune.outputs.labels import Labels
from unmask.tune.outputs.pair import PairClass
from unmask.tune.outputs.rank import Rank
from unmask.tune.outputs.regress import Regress
from unmask.tune.outputs.span import Span
from unmask.tune.outputs.tag import Tag
from unmask.tune.outputs.write import Write
from unmask.tune.rows import RowQuestion
from unmask.tune.sheet import AnySheet, Sheet, set_aside
from unmask.tune.tagging_files import holds_columns
from unmask.tune.tagging_objects import seems_tagged
from unmask.tune.texts import asks_to_write
from unmask.tune.wish import NO_WISH, Wish

Reader: TypeAlias = Callable[[Path, Choice, bool], tuple[AnySheet, Choice]]
"""From a path and the fields that the user named to questions (without truths on wish) and the fields that it read."""

Learn: TypeAlias = Callable[[AnySheet, Wish], Output]
"""From the questions of a training file to what is asked."""

_KINDS: Mapping[Kind, tuple[Reader, Learn]] = MappingProxyType(
    {
        Kind.CLASSIFY: (rows.read, Classify.learn),
        Kind.LABELS: (label_rows.read, Labels.learn),
        Kind.REGRESS: (rows.read, Regress.learn),
        Kind.TAG: (tagging_files.read, Tag.learn),
        Kind.SPAN: (asking.read, Span.learn),
        Kind.CHOOSE: (choice_rows.read, Choose.learn),
        Kind.RANK: (rank_rows.read, Rank.learn),
        Kind.PAIR: (rows.read, PairClass.learn),
        Kind.WRITE: (texts.read, Write.learn),
    }
)
ASIDE = 0.1
"""The share of the texts that is judged by where no second file is given."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is learned from, what is judged by, and what is asked."""

    output: Output
    learned: AnySheet
    judged: AnySheet
    choice: Choice
    """Which fields were read."""
    files: tuple[tuple[str, str], ...]
    """Name and digest of every file."""
    asked: tuple[str, ...] = ()
    """What is asked, in sentences."""

    @property
    def told(self) -> Iterator[str]:
        """What was read, in sentences."""
        yield f"{self.learned.name}: {len(self.learned):,} rows to learn from; {self.choice}"
        yield from self.asked
        yield from self.learned.notes
        if len(self.files) == 1:
            yield f"{len(self.judged):,} of its rows (1 text in {1 / ASIDE:.0f}) were set aside to judge by"
        else:
            yield f"{self.judged.name}: {len(self.judged):,} rows to judge by"
            yield from self.judged.notes
        both = self.judged.shared_with(self.learned)
        if both:
            yield f"note: {both:,} of the rows to judge by have a text that is also learned from"


def read_job(train: Path, dev: Path | None, wish: Wish = NO_WISH, seed: int = 0) -> Job:
    """Read a task. Without a file to judge by, one text in ten is set aside; without a kind, the file decides."""
    whole, choice, output = _learn(train, wish)
    learned, judged = set_aside(whole, ASIDE, seed) if dev is None else (whole, read(dev, output.kind, choice))
    output.check(judged)  # an unknown label is refused now, before anything is opened or made
    files = tuple((path.name, digest_of(path)) for path in (train, dev) if path is not None)
    return Job(output, _practice(output, learned), judged, choice, files, tuple(output.told(learned)))


def _practice(output: Output, sheet: AnySheet) -> AnySheet:
    """What is learned from: groups of candidates only where they tell some apart, and none too large for a batch."""
    return output.practice(sheet) if isinstance(output, Rank) else sheet


def read(path: Path, kind: Kind, choice: Choice, truths: bool = True) -> AnySheet:
    """The questions of another file of the same task; `truths`: whether it must tell them."""
    return _KINDS[kind][0](path, choice, truths)[0]


def _learn(path: Path, wish: Wish) -> tuple[AnySheet, Choice, Output]:
    """Questions, the fields they stand in, and what is asked."""
    kind = wish.kind or guess_kind(path, wish.choice)
    sheet, choice = _KINDS[kind][0](path, wish.choice, True)
    if wish.kind is None and kind is Kind.CLASSIFY and are_amounts(sheet):
        kind = Kind.REGRESS
    return sheet, choice, _KINDS[kind][1](sheet, wish)


def guess_kind(path: Path, choice: Choice) -> Kind:
    """What a file seems to ask, from its form and the names of its fields."""
    if holds_columns(path):
        return Kind.TAG
    if choice.numbered:
        return Kind.CLASSIFY  # no names to go by
    first = first_row(path)
    if seems_tagged(first):
        return Kind.TAG
    if asks_to_choose(first, choice):
        return Kind.CHOOSE
    if asks_for_labels(first, choice):
        return Kind.LABELS
    if asks_to_write(first):
        return Kind.WRITE
    return Kind.SPAN if asks_for_spans(path) else Kind.CLASSIFY


def are_amounts(sheet: Sheet[RowQuestion]) -> bool:
    """Whether the truths are numbers and some are not whole. A few that are no numbers are mistakes, not classes."""
    numbers = [number for question in sheet.questions for number in _as_number(question.truth)]
    return 2 * len(numbers) > len(sheet) and not all(number.is_integer() for number in numbers)


def _as_number(truth: str) -> tuple[float, ...]:
    """A truth as a number, or nothing."""
    try:
        return (float(truth),)
    except ValueError:
        return ()
