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

from unmask.config.network import NetworkConfig
from unmask.config.optim import Schedule
from unmask.finetuning.artifact import BaseModelRef, FineTunedNetwork, save_finetuned
from unmask.finetuning.finetune import model_digest
from unmask.finetuning.methods.protocol import DEFAULT_SCHEDULE, CachedLayers, FullFineTuning
from unmask.finetuning.parameter_roles import ParameterLocation, ParameterRole
from unmask.nets.model import EncoderWithHeads
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.optim.param_lr import ParamLR

ENCODER_FOLDER = "encoder"
"""The folder of the shared encoder."""


@dataclass(frozen=True, slots=True)
class SharedEncoder:
    """The trunk has learned with several heads, so it is saved once, and each head apart from it."""

    name: ClassVar[str] = "shared"
    default_lr: ClassVar[float] = FullFineTuning.default_lr
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = True

    def check(self, trunk: NetworkConfig) -> None:
        """Any will do."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """Nothing is added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Of what one task has, only the head is its own."""
        return ParamLR(1.0 if location.role is ParameterRole.HEAD else 0.0)


def save_head(tuned: FineTunedNetwork, folder: Path, encoder: EncoderWithHeads, facts: Mapping[str, object]) -> None:
    """Write one task's head into its folder; the trunk lies beside that folder."""
    root = BaseModelRef(ENCODER_FOLDER, f"../{ENCODER_FOLDER}", model_digest(encoder))
    folder.mkdir(exist_ok=True)
    save_finetuned(replace(tuned, method=SharedEncoder()), folder, root, facts)
