"""A pre-training run as a value: its folder, settings, log and result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.core.errors import InputError
from unmask.train.rundir.folder import is_finished, is_run_folder, read_finished, read_run
from unmask.train.rundir.run_writer import RECORD, read_record

if TYPE_CHECKING:
    from unmask.api.models import Model


@dataclass(frozen=True, slots=True)
class Run:
    """The folder of a pre-training run."""

    folder: Path

    @staticmethod
    def open(folder: Path | str) -> Run:
        """Open the folder of a run."""
        if not is_run_folder(Path(folder)):
            raise InputError(f"{folder} holds no run: it has no run.json. Name the folder given to pretrain as `out`.")
        return Run(Path(folder))

    @property
    def settings(self) -> dict[str, Any]:
        """The content of `run.json`: recipe, budget, seed, corpus."""
        return read_run(self.folder)

    @property
    def is_finished(self) -> bool:
        """Whether the training reached its budget."""
        return is_finished(self.folder)

    @property
    def result(self) -> dict[str, Any]:
        """Steps, tokens and seconds of a finished run, and its best evaluation."""
        return read_finished(self.folder)

    def record(self) -> list[dict[str, Any]]:
        """The lines of `record.jsonl`: starts, steps, evaluations, samples."""
        return list(read_record(self.folder / RECORD))

    def load(self, checkpoint: str = "last") -> Model:
        """The trained model: the last checkpoint, or the best by held-out loss."""
        from unmask.api.models import Model

        return Model.open(self.folder, checkpoint)
