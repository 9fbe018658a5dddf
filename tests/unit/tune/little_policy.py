"""Every policy on a small task, with a network that has levels enough to tell them apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from little_task import TRUNK, little_model, little_tokenizer, reviews, write_lines

from unmask.nets.trunk import Trunk
from unmask.objectives.part import Learnable
from unmask.train.learner import Learner
from unmask.train.processes import Processes
from unmask.train.record import Line, Listener
from unmask.train.run import Run
from unmask.tune.job import read_job
from unmask.tune.judge import Judge
from unmask.tune.policies.adapter import Adapter
from unmask.tune.policies.frozen import Frozen
from unmask.tune.policies.gradual import Gradual
from unmask.tune.policies.layers import Layers
from unmask.tune.policies.lora import Lora
from unmask.tune.policies.norms import Norms
from unmask.tune.policies.top import Top
from unmask.tune.policy import Full, Policy
from unmask.tune.saved import Tuned
from unmask.tune.start import Origin, new_learner
from unmask.tune.tuning import Settings, Tuning

torch.set_num_threads(1)  # these networks are tiny: threads would only wait for each other

CPU = torch.device("cpu")
ALONE = Processes(0, 1, CPU)
TOKENIZER = little_tokenizer()
DEEP = replace(TRUNK, depth=3)
SETTINGS = Settings(epochs=1, batch=4, length=24, rate=1e-2)
"""Six steps for 24 rows."""
EVERY: tuple[Policy, ...] = (
    Full(),
    Full(decay=0.5),
    Frozen(),
    Frozen(cache=False),
    Layers(),
    Layers(cache=False),
    Layers(move=True),
    Adapter(width=4),
    Lora(rank=2),
    Norms(),
    Top(blocks=1),
    Top(blocks=3),
    Gradual(),
)
APART = tuple(policy for policy in EVERY if policy.apart)


def named(policy: object) -> str:
    return str(policy)


def tuning(folder: Path, policy: Policy, settings: Settings = SETTINGS, trunk: Trunk = DEEP) -> Tuning:
    """A task of 24 rows to learn from and 12 to be judged by."""
    train = write_lines(folder / "train.jsonl", reviews(24))
    dev = write_lines(folder / "dev.jsonl", reviews(12, first=100))
    return Tuning(read_job(train, dev), little_model(trunk=trunk), TOKENIZER, settings, "little", policy)


def tuned(made: Tuning, folder: Path, listeners: tuple[Listener, ...] = (), trials: int = 2) -> Tuned:
    folder.mkdir(exist_ok=True)
    return made.train(made.lay_out(), Run(device=CPU, keep=1, trials=trials), ALONE, folder, listeners)


def equipped(policy: Policy, trunk: Trunk = DEEP, objectives: tuple[Learnable, ...] = (Judge(2),)) -> Learner:
    learner = new_learner(little_model(trunk=trunk), objectives, 0, Origin.PRETRAINED)
    policy.equip(learner, 0)
    return learner


class Stop(Exception):
    """Someone pulls the plug."""


def stop_at(step: int) -> Listener:
    """Hears the record, and stops the run with the line of a step."""

    def hear(line: Line) -> None:
        if line["step"] == step:
            raise Stop

    return hear
