"""A run folder as a `RunRecord`: `run.json`, `record.jsonl` and `finished.json`."""

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
    """A run with its metadata and all series of its log."""

    folder: Path
    metadata: Json
    """`run.json`."""
    starts: tuple[Json, ...]
    """The first start and every resume."""
    training: Mapping[str, MetricSeries]
    """Series of the steps by name: `loss.mlm`, `right.mlm`, `rate`, `norm`, ..."""
    evals: Mapping[str, MetricSeries]
    """Series of the evaluations, by the same names."""
    samples: tuple[Json, ...]
    lengths: tuple[tuple[int, int], ...]
    """The steps at which the row length changed, with the new length."""
    ends: tuple[Json, ...]
    """`finished.json`, once the run is finished."""

    @property
    def is_finished(self) -> bool:
        """Whether the run is finished."""
        return bool(self.ends)

    @property
    def scores(self) -> Mapping[str, float]:
        """The final metrics of a fine-tuned model."""
        scores = {name: score for end in self.ends for name, score in (end.get("metrics") or {}).items()}
        return {name: float(score) for name, score in scores.items() if isinstance(score, int | float)}

    @property
    def layer_weights(self) -> tuple[float, ...]:
        """The learned weight of each layer, if the method has them."""
        return tuple(float(share) for end in self.ends for share in end.get("layers") or ())

    @property
    def objectives(self) -> tuple[str, ...]:
        """The names of the objectives."""
        names = dict.fromkeys([*self.training, *self.evals])
        return tuple(name.removeprefix("loss.") for name in names if name.startswith("loss."))

    def has_accuracy(self, objective: str) -> bool:
        """Whether an objective has an accuracy; a regression has none."""
        name = f"accuracy.{objective}"
        return any(name in kind and kind[name].value.any() for kind in (self.training, self.evals))

    @property
    def resume_steps(self) -> tuple[int, ...]:
        """The steps at which the run was resumed."""
        return tuple(int(start["step"]) for start in self.starts[1:])

    @property
    def num_steps(self) -> int:
        """The number of finished steps."""
        return int(max(series.step[-1] for series in (*self.training.values(), *self.evals.values())))

    @property
    def num_tokens(self) -> float:
        """The number of trained tokens."""
        return float(max(series.tokens[-1] for series in (*self.training.values(), *self.evals.values())))

    def last_value(self, name: str) -> float:
        """The last value of a series of the steps; 0 without values."""
        return float(self.training[name].value[-1]) if name in self.training else 0.0

    def mean(self, name: str) -> float:
        """The mean of a series over all steps."""
        return float(self.training[name].value.mean())


def read_run(folder: Path) -> RunRecord:
    """Read a run folder of any command."""
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
    """The lines of a log with their position. An incomplete last line is skipped."""
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
