"""What several tasks have learned together, as folders: the trunk once, and a head for each task beside it.

What arrives: a trunk, or one task's share of a learner. What leaves: `trunk/`, from which every command can start, and
a tuned folder for each task that says where its trunk lies.
What never happens here: a second copy of the trunk, or pickle. `trunk.json` is written last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save

from unmask import __version__
from unmask.codec import decode, encode
from unmask.errors import InputError, RecipeError, UserError
from unmask.nets.model import Model
from unmask.nets.trunk import Trunk
from unmask.optimising import Schedule
from unmask.shards.files import digest_of as digest_of_file
from unmask.shards.files import new_file, read_json, write_json, write_text
from unmask.tokenize.tokenizer import Tokenizer
from unmask.train.learner import Learner, take_weights
from unmask.train.pace import Pace
from unmask.tune.places import Part, Place
from unmask.tune.policy import USUAL_SCHEDULE, Full, Recall
from unmask.tune.saved import MODEL, TOKENIZER, Root, Tuned, save_tuned
from unmask.tune.tuning import digest_of

TRUNK, ABOUT = "trunk", "trunk.json"
"""The folder of a trunk, and what is said about it there."""


@dataclass(frozen=True, slots=True)
class Shared:
    """The trunk has learned with several heads, so it is saved once, and each head apart from it."""

    name: ClassVar[str] = "shared"
    usual_rate: ClassVar[float] = Full.usual_rate
    schedule: ClassVar[Schedule] = USUAL_SCHEDULE
    remembers: ClassVar[Recall] = Recall.NOTHING
    apart: ClassVar[bool] = True

    def check(self, trunk: Trunk) -> None:
        """Any will do."""

    def equip(self, learner: Learner, seed: int) -> None:
        """Nothing is added."""

    def pace(self, place: Place, top: int) -> Pace:
        """Of what one task has, only the head is its own."""
        return Pace(1.0 if place.part is Part.HEAD else 0.0)


def save_head(tuned: Tuned, folder: Path, trunk: Model, facts: Mapping[str, object]) -> None:
    """Write one task's head into its folder; the trunk lies beside that folder."""
    root = Root(TRUNK, f"../{TRUNK}", digest_of(trunk))
    folder.mkdir(exist_ok=True)
    save_tuned(replace(tuned, policy=Shared()), folder, root, facts)


def save_trunk(trunk: Model, tokenizer: Tokenizer, folder: Path, facts: Mapping[str, object]) -> None:
    """Write a trunk with its tokenizer; last of all what is known about it."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in trunk.named_parameters()}
    broken = [name for name, tensor in weights.items() if not tensor.isfinite().all()]
    if broken:
        raise UserError(f"The network holds numbers that are not finite, first in {broken[0]}. Take a lower --rate.")
    folder.mkdir(exist_ok=True)
    with new_file(folder / MODEL) as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, tokenizer.pipeline.to_str(pretty=True))
    said = {
        "unmask": __version__,
        "trunk": encode(trunk.shape),
        "vocabulary": trunk.vocabulary,
        "positions": trunk.positions,
        "files": {MODEL: digest_of_file(folder / MODEL)},
    }
    write_json(folder / ABOUT, said | dict(facts))


def is_trunk(folder: Path) -> bool:
    """Whether a folder holds a trunk that was saved alone."""
    return (folder / ABOUT).is_file()


def load_trunk(folder: Path) -> tuple[Model, Tokenizer]:
    """Read a trunk back: in float32, on the CPU, at rest."""
    said = read_json(folder / ABOUT, "Make the folder again.", InputError)
    try:
        shape = decode(said["trunk"], Trunk)
        model = Model(shape, int(said["vocabulary"]), int(said["positions"]), tokens=False, row=False)
        digest = said["files"][MODEL]
    except (KeyError, TypeError, ValueError, RecipeError) as error:
        raise InputError(f"{folder / ABOUT} does not describe a trunk ({error!r}). Make the folder again.") from error
    try:
        if digest_of_file(folder / MODEL) != digest:
            raise InputError(f"{folder / MODEL} is not what was written: its digest differs. Make the folder again.")
        take_weights(model, load_file(folder / MODEL))
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder / MODEL} cannot be read ({error}). Make the folder again.") from error
    return model.eval(), Tokenizer.load(folder / TOKENIZER)
