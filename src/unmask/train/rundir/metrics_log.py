"""The record of a run, `record.jsonl`: one JSON object a line, in the order of its steps.

A resumed run first cuts the record back to the step that it continues from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO, TypeAlias

from unmask.core.io.atomic import atomic_file, disk_errors
from unmask.core.reporter import ProgressCallback

RECORD = "record.jsonl"
LogLine: TypeAlias = Mapping[str, Any]
"""What is said once, as plain data: its `kind`, its `step`, and what belongs to that kind."""
Listener: TypeAlias = Callable[[LogLine], None]
"""Hears every line as it is written."""


class MetricsLog:
    """A file that lines are added to. Open it with the step from which the run goes on."""

    def __init__(self, folder: Path, step: int) -> None:
        self.path = folder / RECORD
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            truncate_after(self.path, step)
            self._file: TextIO = self.path.open("a", encoding="utf-8")

    def add(self, line: LogLine) -> None:
        """One line; a reader sees it at once."""
        with disk_errors(self.path.parent):
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._file.flush()

    def fsync(self) -> None:
        """Make the lines so far survive whatever happens to the machine."""
        with disk_errors(self.path.parent):
            os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        with disk_errors(self.path.parent):
            self._file.close()


def step_counter(tick: ProgressCallback, remark: Callable[[LogLine], str]) -> Listener:
    """A listener that reports the number of steps, with a remark made from each line."""

    def listen(line: LogLine) -> None:
        if line["kind"] == "start" and line["step"]:
            tick.note(f"going on from step {line['step']:,}")
        tick(line["step"], remark(line))

    return listen


def read_record(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a record, up to one that a kill or a full disk has torn."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                line: dict[str, Any] = json.loads(text)
            except ValueError:
                return
            if text.endswith("\n"):
                yield line


def truncate_after(path: Path, step: int) -> None:
    """Remove the lines of steps that will be done again, and a torn one. Trials of the kept step stay."""
    if not path.exists():
        return
    with atomic_file(path) as file:  # line by line: a long run has millions of them
        for line in read_record(path):
            if line["step"] <= step:
                file.write(f"{json.dumps(line, ensure_ascii=False)}\n".encode("utf-8", "backslashreplace"))
