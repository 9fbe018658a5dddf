"""Every policy on a small task, with a network that has levels enough to tell them apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from little_task import TRUNK, little_model, little_tokenizer, reviews, write_lines

from unmask.config.network import TransformerConfig
from unmask.finetuning.artifact import FineTunedNetwork
from unmask.finetuning.finetune import FineTune, FineTuneSettings
from unmask.finetuning.init_weights import StartFrom, build_model
from unmask.finetuning.methods.adapter import Adapter
from unmask.finetuning.methods.frozen import FrozenEncoder, ScalarMixing
from unmask.finetuning.methods.lora import Lora
from unmask.finetuning.methods.protocol import FullFineTuning, Method
from unmask.finetuning.methods.unfreezing import GradualUnfreezing, NormOnly, TopLayers
from unmask.finetuning.task_data import load_task_data
from unmask.objectives.protocol import Objective
from unmask.objectives.row_tasks import Classification
from unmask.train.multi_head_model import MultiHeadModel
from unmask.train.run_config import DistContext, RunConfig
from unmask.train.rundir.run_writer import Listener, LogLine

torch.set_num_threads(1)  # these networks are tiny: threads would only wait for each other

CPU = torch.device("cpu")
ALONE = DistContext(0, 1, CPU)
TOKENIZER = little_tokenizer()
DEEP = replace(TRUNK, depth=3)
SETTINGS = FineTuneSettings(epochs=1, batch_size=4, max_length=24, lr=1e-2)
"""Six steps for 24 rows."""
EVERY: tuple[Method, ...] = (
    FullFineTuning(),
    FullFineTuning(layer_lr_decay=0.5),
    FrozenEncoder(),
    FrozenEncoder(cache_features=False),
    ScalarMixing(),
    ScalarMixing(cache_features=False),
    ScalarMixing(train_encoder=True),
    Adapter(width=4),
    Lora(rank=2),
    NormOnly(),
    TopLayers(num_blocks=1),
    TopLayers(num_blocks=3),
    GradualUnfreezing(),
)
APART = tuple(policy for policy in EVERY if policy.saves_delta_only)


def named(policy: object) -> str:
    return str(policy)


def tuning(
    folder: Path, policy: Method, settings: FineTuneSettings = SETTINGS, trunk: TransformerConfig = DEEP
) -> FineTune:
    """A task of 24 rows to learn from and 12 to be judged by."""
    train = write_lines(folder / "train.jsonl", reviews(24))
    dev = write_lines(folder / "dev.jsonl", reviews(12, first=100))
    return FineTune(load_task_data(train, dev), little_model(trunk=trunk), TOKENIZER, settings, "little", policy)


def tuned(made: FineTune, folder: Path, listeners: tuple[Listener, ...] = (), trials: int = 2) -> FineTunedNetwork:
    folder.mkdir(exist_ok=True)
    return made.train(
        made.encode(), RunConfig(device=CPU, keep_checkpoints=1, num_evals=trials), ALONE, folder, listeners
    )


def equipped(
    policy: Method, trunk: TransformerConfig = DEEP, objectives: tuple[Objective, ...] = (Classification(2),)
) -> MultiHeadModel:
    learner = build_model(little_model(trunk=trunk), objectives, 0, StartFrom.PRETRAINED)
    policy.add_modules(learner, 0)
    return learner


class Stop(Exception):
    """Someone pulls the plug."""


def stop_at(step: int) -> Listener:
    """Hears the record, and stops the run with the line of a step."""

    def hear(line: LogLine) -> None:
        if line["step"] == step:
            raise Stop

    return hear
