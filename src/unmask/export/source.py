"""A network to use, wherever it lies: a run of `unmask pretrain`, or a Hugging Face folder.

What arrives: a folder. What leaves: a `Network`: the network, its tokenizer, and what is known about it.
What never happens here: a change of the folder, or weights that are not what was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.dialect import Dialect
from unmask.errors import InputError
from unmask.export.architecture import FOR_A_TASK
from unmask.export.card import About
from unmask.export.dialects import dialect_for, purposes
from unmask.export.learned import generator_of, left_behind, model_of
from unmask.export.read import check_room, load
from unmask.export.tokenizer_files import read_settings
from unmask.nets.model import Model
from unmask.nets.trunk import read_trunk
from unmask.shards.files import read_json
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.checkpoint import CHECKPOINTS, MODEL, checkpoints, name_of, read_state, read_tensors
from unmask.train.folder import RUN, begun
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
    dialect: Dialect = Dialect.BERT
    """Whose names it is written in."""
    generator: Model | None = None
    """The small network that wrote the guesses which this one learned to tell from text (ELECTRA); not every network
    has had one."""
    left: tuple[str, ...] = ()
    """The heads of the run that have no place in the network."""


def open_source(folder: Path, which: Which = Which.LAST) -> Network:
    """Open a run folder or a Hugging Face folder. The network is on the CPU, in float32, and at rest."""
    folder = Path(folder)
    if is_tuned(folder) or _answers(folder / "config.json"):
        raise InputError(
            f"{folder} holds a network that was tuned for a task: it answers that task and nothing else. Name the run "
            "or the folder that it was tuned from."
        )
    if is_trunk(folder):
        model, tokenizer = load_trunk(folder)
        name = folder.resolve().name
        return Network(model, tokenizer, name, About(name=name), dialect_for(model.shape, Dialect.BERT))
    if begun(folder):
        return _open_run(folder, which)
    if (folder / "config.json").is_file():
        model, tokenizer = load(folder)
        name = folder.resolve().name
        return Network(model, tokenizer, name, About(name=name), dialect_in(folder))
    raise InputError(_nothing_in(folder))


def is_tuned(folder: Path) -> bool:
    """Whether a folder is one that `unmask tune` has finished."""
    return (folder / TASK).is_file()


def _answers(config: Path) -> bool:
    """Whether a Hugging Face folder holds a network that was tuned for a task."""
    if not config.is_file():
        return False
    named = read_settings(config).get("architectures") or ()
    return any(not FOR_A_TASK.isdisjoint(purposes(dialect, named)) for dialect in Dialect)


def dialect_in(folder: Path) -> Dialect:
    """Whose names the network of a folder is written in: as its recipe or its settings say, BERT's if neither does."""
    if (folder / RUN).is_file():
        return _dialect(read_json(folder / RUN, "Name another run.", InputError).get("recipe", {}))
    if (folder / "config.json").is_file():
        kind = read_settings(folder / "config.json").get("model_type")
        return next((dialect for dialect in Dialect if dialect.value == kind), Dialect.BERT)
    return Dialect.BERT


def _dialect(recipe: Mapping[str, Any]) -> Dialect:
    """Recipes that were saved before there were dialects are BERT's."""
    return Dialect[recipe.get("dialect", Dialect.BERT.name)]


def _nothing_in(folder: Path) -> str:
    """Why a folder holds no network, in a sentence."""
    looked_for = (
        "Needed is the folder of a run (run.json and checkpoints, as unmask pretrain leaves them) or a Hugging Face "
        "folder (config.json, model.safetensors and a tokenizer)."
    )
    if not folder.exists():
        return f"{folder}: there is no such folder, and nothing is downloaded. {looked_for}"
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
        trunk = read_trunk(said["recipe"]["trunk"])
        sizes, dialect = (int(said["vocabulary"]), int(said["positions"])), _dialect(said["recipe"])
        about = _about(folder, said, int(checkpoint.name.removeprefix("step-")))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder / RUN} does not describe a run of unmask pretrain ({error!r} is missing or odd). Name the "
            "folder that was given to pretrain as --out."
        ) from error
    state = read_tensors(checkpoint, MODEL)
    model, generator = model_of(state, trunk, *sizes), generator_of(state, said["recipe"], trunk, *sizes)
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    check_room(model, tokenizer)
    left = left_behind(state, model.vocabulary)
    return Network(model, tokenizer, about.name, about, dialect, generator, left)


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
