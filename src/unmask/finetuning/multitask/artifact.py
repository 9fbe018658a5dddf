"""Multi-task models as folders: the shared encoder once, and a head for each task that refers to it."""

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
    """Multi-task fine-tuning: the encoder is shared and saved once, each head as delta weights."""

    name: ClassVar[str] = "shared"
    default_lr: ClassVar[float] = FullFineTuning.default_lr
    schedule: ClassVar[Schedule] = DEFAULT_SCHEDULE
    caches: ClassVar[CachedLayers] = CachedLayers.NOTHING
    saves_delta_only: ClassVar[bool] = True

    def check(self, config: NetworkConfig) -> None:
        """Every network is supported."""

    def add_modules(self, learner: MultiHeadModel, seed: int) -> None:
        """No modules are added."""

    def param_lr(self, location: ParameterLocation, top_level: int) -> ParamLR:
        """Only the head belongs to the task."""
        return ParamLR(1.0 if location.role is ParameterRole.HEAD else 0.0)


def save_head(tuned: FineTunedNetwork, folder: Path, encoder: EncoderWithHeads, facts: Mapping[str, object]) -> None:
    """Write the head of one task, with a reference to the encoder folder next to it."""
    base_model = BaseModelRef(ENCODER_FOLDER, f"../{ENCODER_FOLDER}", model_digest(encoder))
    folder.mkdir(exist_ok=True)
    save_finetuned(replace(tuned, method=SharedEncoder()), folder, base_model, facts)
