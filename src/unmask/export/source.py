"""A network to use, wherever it lies: a run of `unmask pretrain`, or a Hugging Face folder.

What arrives: a folder. What leaves: a `Network`: the network, its tokenizer, and what is known about it.
What never happens here: a change of the folder, or weights that are not what was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from unmask.codec import decode
from unmask.errors import InputError
from unmask.export.bert import FOR_A_TASK
from unmask.export.card import About
from unmask.export.read import check_room, load
from unmask.export.tokenizer_files import read_settings
from unmask.nets.model import ROW_CLASSES, Model
from unmask.nets.trunk import Trunk
from unmask.shards.files import read_json
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.checkpoint import CHECKPOINTS, MODEL, checkpoints, name_of, read_state, read_tensors
from unmask.train.folder import RUN, begun
from unmask.train.learner import take_weights
from unmask.tune.many_saved import is_trunk, load_trunk
from unmask.tune.saved import TASK
from unmask.use.choices import Which


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network with everything that comes along."""

    model: Model
    tokenizer: Tokenizer
    name: str
    about: About


def open_source(folder: Path, which: Which = Which.LAST) -> Network:
    """Open a run folder or a Hugging Face folder. The network is on the CPU, in float32, and at rest."""
    folder = Path(folder)
    if is_tuned(folder) or _answers(folder / "config.json"):
        raise InputError(
            f"{folder} holds a network that was tuned for a task: it answers that task and nothing else. Name the run "
            "or the folder that it was tuned from."
        )
    if is_trunk(folder):
        return Network(*load_trunk(folder), folder.resolve().name, About(name=folder.resolve().name))
    if begun(folder):
        return _open_run(folder, which)
    if (folder / "config.json").is_file():
        model, tokenizer = load(folder)
        name = folder.resolve().name
        return Network(model, tokenizer, name, About(name=name))
    raise InputError(_nothing_in(folder))


def is_tuned(folder: Path) -> bool:
    """Whether a folder is one that `unmask tune` has finished."""
    return (folder / TASK).is_file()


def _answers(config: Path) -> bool:
    """Whether a Hugging Face folder holds a network that was tuned for a task."""
    return config.is_file() and not FOR_A_TASK.isdisjoint(read_settings(config).get("architectures") or ())


def _nothing_in(folder: Path) -> str:
    """Why a folder holds no network, in a sentence."""
    looked_for = (
        "Needed is the folder of a run (run.json and checkpoints, as unmask pretrain leaves them) or a Hugging Face "
        "folder of a BERT (config.json, model.safetensors and a tokenizer)."
    )
    if not folder.exists():
        return f"{folder}: there is no such folder. {looked_for}"
    if not folder.is_dir():
        return f"{folder} is a file. {looked_for}"
    if (folder / "manifest.json").is_file():
        return (
            f"{folder} is a prepared corpus, not a network. Train one on it first, for example with: "
            f"unmask pretrain bert --size tiny --data {folder} --out runs/tiny --steps 1000"
        )
    what = "holds neither run.json nor config.json" if any(folder.iterdir()) else "is empty"
    return f"{folder} {what}. {looked_for}"


def _open_run(folder: Path, which: Which) -> Network:
    said = _read_run(folder / RUN)
    checkpoint = _checkpoint(folder, which)
    try:
        trunk = decode(said["recipe"]["trunk"], Trunk)
        sizes = int(said["vocabulary"]), int(said["positions"])
        about = _about(folder, said, int(checkpoint.name.removeprefix("step-")))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder / RUN} does not describe a run of unmask pretrain ({error!r} is missing or odd). Name the "
            "folder that was given to pretrain as --out."
        ) from error
    model = model_of(read_tensors(checkpoint, MODEL), trunk, *sizes)
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    check_room(model, tokenizer)
    return Network(model, tokenizer, about.name, about)


def _read_run(path: Path) -> dict[str, Any]:
    said = read_json(path, "Name another run.", InputError)
    if said.get("kind") != "pretrain":
        raise InputError(f"{path} does not describe a run of unmask pretrain. Name the folder of such a run.")
    return said


def _checkpoint(folder: Path, which: Which) -> Path:
    found = checkpoints(folder / CHECKPOINTS)
    if not found:
        raise InputError(f"The run in {folder} has saved no checkpoint yet. Wait for the first, or start it again.")
    if which is Which.BEST:
        best = name_of(read_state(found[-1]).best.step)
        return next((path for path in found if path.name == best), found[-1])
    return found[-1]


def _about(folder: Path, said: Mapping[str, Any], step: int) -> About:
    recipe, corpus = said["recipe"], said["corpus"]
    origin = f", continued from {Path(said['from']).name}" if said.get("from") else ""
    return About(
        name=folder.resolve().name,
        recipe=f"{recipe['name']}, {step:,} steps{origin}",
        paper=recipe["paper"],
        fingerprint=said["fingerprint"],
        corpus={what: int(corpus[what]) for what in ("documents", "tokens")},
    )


def model_of(state: Mapping[str, Tensor], trunk: Trunk, vocabulary: int, positions: int) -> Model:
    """The network in a learner's weights: its trunk, the head that says tokens, and the head with two classes for rows.

    Heads of another kind stay behind; so does a second head of the same kind.
    """
    tokens = _first(state, ".tokens.bias", vocabulary)
    row = _first(state, ".row.classify.bias", ROW_CLASSES)
    model = Model(trunk, vocabulary, positions, bool(tokens), bool(row))
    weights = {
        name.removeprefix(prefix): tensor
        for name, tensor in state.items()
        for prefix, part in (("", "trunk."), (tokens, "tokens."), (row, "row."))
        if name.startswith(prefix + part)
    }
    try:
        take_weights(model, weights)
    except InputError as error:
        raise InputError(f"The checkpoint does not fit what run.json says of the network. {error}") from error
    return model.eval()


def _first(state: Mapping[str, Tensor], end: str, size: int) -> str:
    """What the names of the first head begin with that has a vector of this size under this end; nothing if none."""
    found = sorted(name for name, tensor in state.items() if name.endswith(end) and len(tensor) == size)
    return found[0].removesuffix(end) + "." if found else ""
