"""The folder of a run, read: what was set out to do, and every number that was written on the way.

What arrives: a folder with `run.json` and `record.jsonl`. What leaves: a `RunRecord`, its numbers as columns.
What never happens here: a guess. A line that cannot be read is named; only a last line that a kill has torn is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from unmask.core.errors import InputError
from unmask.core.io.atomic import read_versioned_json
from unmask.reports.read_log import Json, LogReader, MetricSeries


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it was recorded."""

    folder: Path
    metadata: Json
    """`run.json`."""
    starts: tuple[Json, ...]
    """One for the beginning, and one for each time the run was taken up again."""
    training: Mapping[str, MetricSeries]
    """Numbers of the steps by name: `loss.mlm`, `right.mlm`, `rate`, `norm`, ..."""
    evals: Mapping[str, MetricSeries]
    """Numbers of the validation, by the same names."""
    samples: tuple[Json, ...]
    lengths: tuple[tuple[int, int], ...]
    """The steps at which the row length changed, and to what."""
    ends: tuple[Json, ...]
    """`finished.json`, once the run came to its end."""

    @property
    def is_finished(self) -> bool:
        """Whether the run came to its end."""
        return bool(self.ends)

    @property
    def scores(self) -> Mapping[str, float]:
        """How the finished network did on a task, if it was tuned for one."""
        scores = {name: score for end in self.ends for name, score in (end.get("metrics") or {}).items()}
        return {name: float(score) for name, score in scores.items() if isinstance(score, int | float)}

    @property
    def layer_weights(self) -> tuple[float, ...]:
        """How much each layer counts, where a task has learned that."""
        return tuple(float(share) for end in self.ends for share in end.get("layers") or ())

    @property
    def objectives(self) -> tuple[str, ...]:
        """What was learned, by name."""
        names = dict.fromkeys([*self.training, *self.evals])
        return tuple(name.removeprefix("loss.") for name in names if name.startswith("loss."))

    def has_accuracy(self, objective: str) -> bool:
        """Whether an objective has right answers: one that says a number is never exactly right."""
        name = f"accuracy.{objective}"
        return any(name in kind and kind[name].value.any() for kind in (self.training, self.evals))

    @property
    def resume_steps(self) -> tuple[int, ...]:
        """The steps at which the run was taken up again."""
        return tuple(int(start["step"]) for start in self.starts[1:])

    @property
    def num_steps(self) -> int:
        """How many steps are finished."""
        return int(max(series.step[-1] for series in (*self.training.values(), *self.evals.values())))

    @property
    def num_tokens(self) -> float:
        """How many tokens were seen."""
        return float(max(series.tokens[-1] for series in (*self.training.values(), *self.evals.values())))

    def last_value(self, name: str) -> float:
        """The last value of a number of the steps; 0 if it was never written."""
        return float(self.training[name].value[-1]) if name in self.training else 0.0

    def mean(self, name: str) -> float:
        """The mean of a number over all steps."""
        return float(self.training[name].value.mean())


def read_run(folder: Path) -> RunRecord:
    """Read a run folder, whatever command made it."""
    head = _object(folder / "run.json")
    reading = LogReader()
    for where, line in _lines(folder):
        try:
            reading.add_line(line)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{where} is damaged ({error!r}). Take that line out, and try again.") from error
    training, trials = reading.series()
    if not training and not trials:
        raise InputError(f"{folder} has no record yet: no step is finished. Try again when the run has come further.")
    starts, samples, lengths = tuple(reading.starts), tuple(reading.samples), tuple(reading.lengths)
    ends = tuple(_object(folder / name) for name in ("finished.json",) if (folder / name).is_file())
    return RunRecord(folder, head, starts, training, trials, samples, lengths, ends)


def _object(path: Path) -> Json:
    if not path.is_file():
        raise InputError(
            f"{path.parent} holds no run: there is no {path.name}. Give a folder that pretrain or tune wrote to."
        )
    return read_versioned_json(path, "Give a run folder whose files are whole.", InputError)


def _lines(folder: Path) -> Iterator[tuple[str, Json]]:
    """The lines of a record, with where they stand. A last line without an end is what a kill leaves behind."""
    path = folder / "record.jsonl"
    if not path.is_file():
        raise InputError(f"{folder} has no record yet: there is no record.jsonl. Start the run first.")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield f"{path}:{number}", json.loads(line)
            except ValueError as error:
                if line.endswith(b"\n"):
                    where = f"{path}:{number}"
                    raise InputError(f"{where} is damaged ({error}). Take that line out, and try again.") from error
