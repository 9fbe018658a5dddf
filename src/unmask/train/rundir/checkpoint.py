"""Checkpoints: weights, optimizer state and progress of a run, as safetensors and JSON.

A folder `step-000001000` is written, flushed and then renamed, with a digest of every file.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from unmask.core.errors import InputError
from unmask.core.io.atomic import (
    FORMAT,
    atomic_folder,
    digest_bytes,
    digest_file,
    is_temp_path,
    temp_path,
    write_blocks,
    write_versioned_json,
)
from unmask.train.rundir.safetensors_stream import blocks_of
from unmask.train.schedule import RunProgress

CHECKPOINTS = "checkpoints"
"""What the folder that they lie in is called, inside the folder of a run."""
MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"


@dataclass(frozen=True, slots=True)
class BestEval:
    """The best trial so far, by the weighted sum of its losses."""

    loss: float = float("inf")
    step: int = 0


@dataclass(frozen=True, slots=True)
class RunState:
    """Where a run stands."""

    progress: RunProgress = RunProgress()
    best: BestEval = BestEval()

    def describe(self) -> dict[str, Any]:
        """The state as plain data. JSON has no infinity: before the first trial there is no best."""
        return {**asdict(self.progress), "best": asdict(self.best) if math.isfinite(self.best.loss) else {}}


def save_checkpoint(
    folder: Path, model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor], state: RunState
) -> Path:
    """Write a checkpoint in `folder`."""
    final = folder / checkpoint_name(state.progress.step)
    if final.exists():
        remove_atomically(final)
    write_checkpoint(final, model, optimizer, state)
    return final


def write_checkpoint(
    final: Path, model: Mapping[str, Tensor], optimizer: Mapping[str, Tensor], state: RunState
) -> None:
    """Write one checkpoint under the given name."""
    with atomic_folder(final) as part:
        digests = {}
        for name, tensors in ((MODEL, model), (OPTIMIZER, optimizer)):
            digests[name] = write_blocks(part / name, blocks_of(tensors))
        content = {**state.describe(), "files": digests}
        write_versioned_json(part / STATE, {**content, "digest": _digest(content)})


def read_state(checkpoint: Path) -> RunState:
    """Where the run stood, after comparing every file with its digest."""
    content = _read_content(checkpoint)
    for name, digest in content["files"].items():
        if not (checkpoint / name).is_file() or digest_file(checkpoint / name) != digest:
            raise _damaged_error(checkpoint, f"{name} is not what was written")
    best = BestEval(**content["best"]) if content["best"] else BestEval()
    return RunState(RunProgress(content["step"], content["tokens"], content["seconds"]), best)


def read_tensors(checkpoint: Path, name: str) -> dict[str, Tensor]:
    """The tensors of one file, compared with its digest."""
    data = (checkpoint / name).read_bytes() if (checkpoint / name).is_file() else b""
    if digest_bytes(data) != _read_content(checkpoint)["files"][name]:
        raise _damaged_error(checkpoint, f"{name} is not what was written")
    try:
        return dict(load(data))
    except SafetensorError as error:
        raise _damaged_error(checkpoint, f"{name}: {error}") from error


def list_checkpoints(folder: Path) -> list[Path]:
    """The finished checkpoints, the oldest first."""
    return sorted(path for path in folder.glob("step-*") if path.is_dir())


def prune_checkpoints(folder: Path, keep: int, best: int) -> None:
    """Remove all but the last `keep` checkpoints and the best one."""
    for path in list_checkpoints(folder)[:-keep]:
        if path.name != checkpoint_name(best):
            remove_atomically(path)


def remove_atomically(path: Path) -> None:
    """Remove a folder so that a kill in between leaves nothing under its name."""
    part = temp_path(path)
    shutil.rmtree(part, ignore_errors=True)
    path.rename(part)
    shutil.rmtree(part, ignore_errors=True)


def remove_partial(folder: Path) -> None:
    """Remove what a killed run left unfinished."""
    for path in folder.glob(".*"):
        if is_temp_path(path):
            shutil.rmtree(path, ignore_errors=True)


def checkpoint_name(step: int) -> str:
    """What the checkpoint of a step is called."""
    return f"step-{step:09d}"


def _read_content(checkpoint: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
        digest, version = content.pop("digest"), content.pop("format")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise _damaged_error(checkpoint, f"{STATE} cannot be read") from error
    if version != FORMAT:
        raise _damaged_error(checkpoint, f"{STATE} has format {version}, and this version of unmask reads {FORMAT}")
    if digest != _digest(content):
        raise _damaged_error(checkpoint, f"{STATE} is not what was written")
    return content


def _digest(content: Mapping[str, Any]) -> str:
    return digest_bytes(json.dumps(content, sort_keys=True).encode())


def _damaged_error(checkpoint: Path, what: str) -> InputError:
    others = [path.name for path in list_checkpoints(checkpoint.parent) if path != checkpoint]
    instead = f"go on from {others[-1]}" if others else "begin again"
    return InputError(
        f"The checkpoint {checkpoint} is damaged: {what}. Remove that folder and start the same command to {instead}."
    )
