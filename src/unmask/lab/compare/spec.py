"""The specification of a comparison, checked before any run: arms, recipes, command-line arguments, FLOPs meters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from unmask import __version__
from unmask.api.pretrain_setup import Preset, PretrainRequest, PretrainSetup
from unmask.core.errors import InputError
from unmask.core.io.atomic import digest_file
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.trainers.bpe import ByteBPE
from unmask.data.tokenize.trainers.characters import Characters
from unmask.data.tokenize.trainers.train import TokenizerTrainer
from unmask.data.tokenize.trainers.unigram import Unigram
from unmask.data.tokenize.trainers.wordpiece import WordPiece
from unmask.evaluation.suite import describe
from unmask.evaluation.suite_file import SuiteTask
from unmask.lab.compare.arms import Arm, ArmRun, arm_runs, parse_arms
from unmask.lab.compare.curves import evals_for
from unmask.train.flops_meter import FlopsMeter
from unmask.train.run_config import Switch

_MIN_EVALS = 20
"""The minimum number of evaluations during pre-training."""
_ALL = 1_000_000
"""More checkpoints than any run has."""
_KINDS: Mapping[str, type[TokenizerTrainer]] = {
    "WordPiece": WordPiece,
    "BPE": ByteBPE,
    "Unigram": Unigram,
    "WordLevel": Characters,
}
"""The trainer of each model type of the `tokenizers` library."""


@dataclass(frozen=True, kw_only=True)
class ComparisonSpec:
    """The members, the data, the budget and the options of all runs."""

    members: tuple[str, ...]
    data: Path
    tasks: tuple[SuiteTask, ...]
    budget: Mapping[str, float | None]
    """Steps, tokens, hours and FLOPs; one is given."""
    changes: tuple[str, ...] = ()
    seeds: int = 3
    points: int = 1
    scratch: Literal["first", "each", "none"] = "first"
    size: str = "small"
    preset: Preset = "published"
    batch_size: int | None = None
    lr: float | None = None
    heldout_fraction: float = 0.01
    finetune_args: tuple[str, ...] = ()
    """Options of every fine-tuning run."""
    device: str = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    compile: bool = False
    cuda_graphs: Switch = "auto"
    no_kernels: bool = False

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """The members with their changes."""
        return parse_arms(self.members, self.changes)

    @cached_property
    def entries(self) -> tuple[ArmRun, ...]:
        """Every network, by seed and arm."""
        return arm_runs(self.arms, self.seeds)

    def rounds(self, at_once: int) -> Iterator[tuple[ArmRun, ...]]:
        """The networks in rounds: after each, every member has one more score on every task.

        A round has several seeds if more networks run in parallel than there are members.
        """
        size = len(self.arms) * max(at_once // len(self.arms), 1)
        return (self.entries[at : at + size] for at in range(0, len(self.entries), size))

    @property
    def from_scratch(self) -> frozenset[str]:
        """The arms that are also fine-tuned from random weights."""
        names = [arm.name for arm in self.arms]
        return frozenset({"first": names[:1], "each": names, "none": []}[self.scratch])

    def setup(self, arm: Arm, seed: int) -> PretrainSetup:
        """The set-up of one pre-training run, as in `unmask pretrain`."""
        budget = self.budget
        steps, tokens = (None if budget[name] is None else int(budget[name] or 0) for name in ("steps", "tokens"))
        request = PretrainRequest(
            member=arm.member,
            size=self.size,
            changes=arm.changes,
            batch_size=self.batch_size,
            lr=self.lr,
            preset=self.preset,
            data=self.data,
            init_from=None,
            seed=seed,
            heldout_fraction=self.heldout_fraction,
            steps=steps,
            tokens=tokens,
            hours=budget["hours"],
            flops=budget["flops"],
        )
        return PretrainSetup(request)

    @cached_property
    def meters(self) -> Mapping[str, FlopsMeter]:
        """The FLOPs meter of each arm; refuses a member that cannot be trained on this corpus."""
        return {arm.name: self.setup(arm, 0).meter for arm in self.arms}

    @property
    def machine_args(self) -> tuple[str, ...]:
        """Options about the machine, for every run."""
        plain = ("--no-kernels",) if self.no_kernels else ()
        return ("--device", self.device, "--precision", self.precision, "--cuda-graphs", self.cuda_graphs, *plain)

    def pretrain_args(self) -> list[str]:
        """Options of every pre-training run, except member and folder."""
        trials = evals_for(self.points, _MIN_EVALS)
        keep = ["--keep-checkpoints", str(_ALL)] if self.points > 1 else []
        faster = ["--compile"] if self.compile else []
        return [
            "--data",
            str(self.data),
            *self._learning_args(),
            *self.machine_args,
            "--num-evals",
            str(trials),
            *keep,
            *faster,
        ]

    def _learning_args(self) -> list[str]:
        """The options that determine the result of pre-training."""
        given = {**self.budget, "batch-size": self.batch_size, "lr": self.lr, "heldout-fraction": self.heldout_fraction}
        words = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
        return [*(("--size", self.size) if self.size else ()), *words, "--preset", self.preset]

    def description(self) -> dict[str, Any]:
        """What identifies the comparison in its folder. Members and seeds may be added later."""
        suite = describe(self.tasks, self.finetune_args, {})
        return {
            "unmask": __version__,
            "kind": "compare",
            "corpus": {"folder": str(self.data.resolve()), "manifest": digest_file(self.data / "manifest.json")},
            "pretrain": self._learning_args(),
            "points": self.points,
            "finetune": suite["options"],
            "tasks": suite["tasks"],
        }

    def describe_vocabulary(self) -> str:
        """The vocabulary of the corpus, and the members that were published with another kind."""
        tokenizer = Tokenizer.load(self.data / "tokenizer.json")
        kind = str(tokenizer.content()["model"]["type"])
        known = _KINDS.get(kind, object)
        others = [
            f"{name} ({type(meter.recipe.tokenizer).__name__})"
            for name, meter in self.meters.items()
            if not isinstance(meter.recipe.tokenizer, known)
        ]
        sentence = f"All members use the {kind} vocabulary of {self.data} ({tokenizer.vocab.size:,} entries)."
        return f"{sentence} Published with another kind: {', '.join(others)}." if others else sentence


def check_alone(hours: float | None, at_once: int) -> None:
    """Refuse a budget in hours for networks that share the machine."""
    if hours is not None and at_once > 1:
        raise InputError(
            f"--hours gives every network the same time on this machine, so no two may share it; found "
            f"--max-pretrainings {at_once}. Leave it out, or give the budget in steps, tokens or FLOPs."
        )
