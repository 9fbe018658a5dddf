"""Checkpoints: everything that a run needs to go on, as safetensors and JSON.

What arrives: a learner, its optimiser and how far they have come.
What leaves: a folder `step-000001000` that was written, flushed and then renamed; and the way back from it.
What never happens here: pickle, a half-written folder under its final name, or a damaged file that is used.
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

from unmask.errors import InputError
from unmask.shards.files import digest_of, digest_of_bytes, is_part, new_folder, part_of, write_blocks, write_json
from unmask.train.budget import Progress
from unmask.train.tensor_file import blocks_of

CHECKPOINTS = "checkpoints"
"""What the folder that they lie in is called, inside the folder of a run."""
MODEL, OPTIMISER, STATE = "model.safetensors", "optimiser.safetensors", "state.json"


@dataclass(frozen=True, slots=True)
class Best:
    """The best trial so far, by the weighted sum of its losses."""

    loss: float = float("inf")
    step: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """Where a run stands."""

    progress: Progress = Progress()
    best: Best = Best()

    def describe(self) -> dict[str, Any]:
        """The state as plain data. JSON has no infinity: before the first trial there is no best."""
        return {**asdict(self.progress), "best": asdict(self.best) if math.isfinite(self.best.loss) else {}}


def save_checkpoint(folder: Path, model: Mapping[str, Tensor], optimiser: Mapping[str, Tensor], state: State) -> Path:
    """Write a checkpoint beside the others in `folder`."""
    final = folder / name_of(state.progress.step)
    if final.exists():
        discard(final)
    write_checkpoint(final, model, optimiser, state)
    return final


def write_checkpoint(final: Path, model: Mapping[str, Tensor], optimiser: Mapping[str, Tensor], state: State) -> None:
    """Write one checkpoint under the given name."""
    with new_folder(final) as part:
        digests = {}
        for name, tensors in ((MODEL, model), (OPTIMISER, optimiser)):
            digests[name] = write_blocks(part / name, blocks_of(tensors))
        content = {**state.describe(), "files": digests}
        write_json(part / STATE, {**content, "digest": _digest(content)})


def read_state(checkpoint: Path) -> State:
    """Where the run stood, after comparing every file with its digest."""
    content = _content(checkpoint)
    for name, digest in content["files"].items():
        if not (checkpoint / name).is_file() or digest_of(checkpoint / name) != digest:
            raise _damaged(checkpoint, f"{name} is not what was written")
    best = Best(**content["best"]) if content["best"] else Best()
    return State(Progress(content["step"], content["tokens"], content["seconds"]), best)


def read_tensors(checkpoint: Path, name: str) -> dict[str, Tensor]:
    """The tensors of one file, compared with its digest."""
    data = (checkpoint / name).read_bytes() if (checkpoint / name).is_file() else b""
    if digest_of_bytes(data) != _content(checkpoint)["files"][name]:
        raise _damaged(checkpoint, f"{name} is not what was written")
    try:
        return dict(load(data))
    except SafetensorError as error:
        raise _damaged(checkpoint, f"{name}: {error}") from error


def checkpoints(folder: Path) -> list[Path]:
    """The finished checkpoints, the oldest first."""
    return sorted(path for path in folder.glob("step-*") if path.is_dir())


def prune(folder: Path, keep: int, best: int) -> None:
    """Remove all but the last `keep` checkpoints and the best one."""
    for path in checkpoints(folder)[:-keep]:
        if path.name != name_of(best):
            discard(path)


def discard(path: Path) -> None:
    """Remove a folder so that a kill in between leaves nothing under its name."""
    part = part_of(path)
    shutil.rmtree(part, ignore_errors=True)
    path.rename(part)
    shutil.rmtree(part, ignore_errors=True)


def sweep_checkpoints(folder: Path) -> None:
    """Remove what a killed run left unfinished."""
    for path in folder.glob(".*"):
        if is_part(path):
            shutil.rmtree(path, ignore_errors=True)


def name_of(step: int) -> str:
    """What the checkpoint of a step is called."""
    return f"step-{step:09d}"


def _content(checkpoint: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
        digest = content.pop("digest")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise _damaged(checkpoint, f"{STATE} cannot be read") from error
    if digest != _digest(content):
        raise _damaged(checkpoint, f"{STATE} is not what was written")
    return content


def _digest(content: Mapping[str, Any]) -> str:
    return digest_of_bytes(json.dumps(content, sort_keys=True).encode())


def _damaged(checkpoint: Path, what: str) -> InputError:
    others = [path.name for path in checkpoints(checkpoint.parent) if path != checkpoint]
    instead = f"go on from {others[-1]}" if others else "begin again"
    return InputError(
        f"The checkpoint {checkpoint} is damaged: {what}. Remove that folder and start the same command to {instead}."
    )
