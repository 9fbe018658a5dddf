"""What a user wished to compare, turned into arms, command lines and measured facts.

What arrives: the plain values of the command line. What leaves: the arms with their recipes, what each will cost, and a
description by which a folder knows its comparison again.
What never happens here: a run, or a folder. What cannot work is refused before anything is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from unmask import __version__
from unmask.api.pretrain_setup import PretrainRequest, PretrainSetup
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
"""How often a network is judged while it is trained, at least."""
_ALL = 1_000_000
"""More checkpoints than any run has."""
_KINDS: Mapping[str, type[TokenizerTrainer]] = {
    "WordPiece": WordPiece,
    "BPE": ByteBPE,
    "Unigram": Unigram,
    "WordLevel": Characters,
}
"""What the library of tokenizers calls the kinds of vocabulary."""


@dataclass(frozen=True, kw_only=True)
class ComparisonSpec:
    """What is compared, and how."""

    members: tuple[str, ...]
    changes: tuple[str, ...]
    data: Path
    tasks: tuple[SuiteTask, ...]
    budget: Mapping[str, float | None]
    seeds: int
    points: int
    scratch: Literal["first", "each", "none"]
    size: str
    short: bool
    batch_size: int | None
    lr: float | None
    heldout_fraction: float
    finetune_args: tuple[str, ...]
    """Words for every tune."""
    device: str
    precision: Literal["auto", "float32", "bfloat16"]
    compile: bool
    cuda_graphs: Switch
    no_kernels: bool

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """Who takes part."""
        return parse_arms(self.members, self.changes)

    @cached_property
    def entries(self) -> tuple[ArmRun, ...]:
        """Every network that is to be made."""
        return arm_runs(self.arms, self.seeds)

    def rounds(self, at_once: int) -> Iterator[tuple[ArmRun, ...]]:
        """The same by seed, so that after a round every member has one more score on every task.

        Where more networks are trained at once than there are members, a round has several seeds.
        """
        size = len(self.arms) * max(at_once // len(self.arms), 1)
        return (self.entries[at : at + size] for at in range(0, len(self.entries), size))

    @property
    def from_scratch(self) -> frozenset[str]:
        """The arms whose shape is also tuned from newly drawn weights."""
        names = [arm.name for arm in self.arms]
        return frozenset({"first": names[:1], "each": names, "none": []}[self.scratch])

    def setup(self, arm: Arm, seed: int) -> PretrainSetup:
        """The parts of one pre-training, as `unmask pretrain` makes them."""
        budget = self.budget
        steps, tokens = (None if budget[name] is None else int(budget[name] or 0) for name in ("steps", "tokens"))
        wish = PretrainRequest(
            member=arm.member,
            size=self.size,
            changes=arm.changes,
            batch_size=self.batch_size,
            lr=self.lr,
            short=self.short,
            data=self.data,
            init_from=None,
            seed=seed,
            heldout_fraction=self.heldout_fraction,
            steps=steps,
            tokens=tokens,
            hours=budget["hours"],
            flops=budget["flops"],
        )
        return PretrainSetup(wish)

    @cached_property
    def meters(self) -> Mapping[str, FlopsMeter]:
        """What steps cost, by arm; refuses a member that cannot be trained on this corpus."""
        return {arm.name: self.setup(arm, 0).meter for arm in self.arms}

    @property
    def machine_args(self) -> tuple[str, ...]:
        """Words about the machine, for every run."""
        plain = ("--plain",) if self.no_kernels else ()
        return ("--device", self.device, "--precision", self.precision, "--graphs", self.cuda_graphs, *plain)

    def pretrain_args(self) -> list[str]:
        """What every pre-training is told beyond its member and its folder."""
        trials = evals_for(self.points, _MIN_EVALS)
        keep = ["--keep", str(_ALL)] if self.points > 1 else []
        faster = ["--compile"] if self.compile else []
        return [
            "--data",
            str(self.data),
            *self._learning_args(),
            *self.machine_args,
            "--trials",
            str(trials),
            *keep,
            *faster,
        ]

    def _learning_args(self) -> list[str]:
        """The words that decide what is learned."""
        given = {**self.budget, "batch": self.batch_size, "rate": self.lr, "held-out": self.heldout_fraction}
        words = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
        return [*(("--size", self.size) if self.size else ()), *words, *(["--short"] if self.short else [])]

    def description(self) -> dict[str, Any]:
        """What all runs have in common: a folder never mixes two comparisons. Members and seeds may be added."""
        suite = describe(self.tasks, self.finetune_args, {})
        return {
            "unmask": __version__,
            "kind": "compare",
            "corpus": {"folder": str(self.data.resolve()), "manifest": digest_file(self.data / "manifest.json")},
            "pretrain": self._learning_args(),
            "points": self.points,
            "tune": suite["options"],
            "tasks": suite["tasks"],
        }

    def describe_vocabulary(self) -> str:
        """Whose tokenizer all members read, and who was published with another kind."""
        tokenizer = Tokenizer.load(self.data / "tokenizer.json")
        kind = str(tokenizer.content()["model"]["type"])
        known = _KINDS.get(kind, object)
        others = [
            f"{name} ({type(meter.recipe.tokenizer).__name__})"
            for name, meter in self.meters.items()
            if not isinstance(meter.recipe.tokenizer, known)
        ]
        said = f"All members read the {kind} vocabulary of {self.data} ({tokenizer.vocab.size:,} entries)."
        return f"{said} Published with another kind: {', '.join(others)}." if others else said


def check_alone(hours: float | None, at_once: int) -> None:
    """Hours on a shared machine are no equal hours."""
    if hours is not None and at_once > 1:
        raise InputError(
            f"--hours gives every network the same time on this machine, so no two may share it; found "
            f"--pretrain-at-once {at_once}. Leave it out, or give the budget in steps, tokens or FLOPs."
        )
