"""Task, Stage, Recipe: how parts are combined; parts that cannot work together are refused (`checks.py`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unmask.config.attention_pattern import FULL, AttentionPattern
from unmask.config.model_type import ModelType
from unmask.config.network import NetworkConfig
from unmask.config.optim import LossWeighting, OptimConfig
from unmask.core.errors import RecipeError
from unmask.core.records import UnitKind
from unmask.data.corrupt.protocol import Corruption
from unmask.data.input_formats.contiguous import ContiguousStreams
from unmask.data.input_formats.row_plan import DynamicMasking, InputFormat, MaskingMode
from unmask.data.tokenize.trainers.train import TokenizerTrainer
from unmask.objectives.protocol import Objective
from unmask.tasks.checks import (
    check_coordinates,
    check_document_isolation,
    check_generator,
    check_no_leak,
    check_rewriter_attention,
    check_shared_heads,
    check_targets_exist,
    check_targets_used,
    check_weights,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One pre-training task: how rows are built, what is hidden, the attention pattern, and what is predicted."""

    name: str
    examples: InputFormat
    corruption: Corruption
    objectives: tuple[Objective, ...]
    attention: AttentionPattern = FULL

    def __post_init__(self) -> None:
        check_document_isolation(self.name, self.examples, self.attention)
        check_coordinates(self.name, self.examples, self.corruption, self.attention)
        check_rewriter_attention(self.name, self.objectives, self.attention)
        for objective in self.objectives:
            check_targets_exist(self.name, objective, self.examples, self.corruption)
            check_no_leak(self.name, objective, self.attention)
        check_generator(self.name, self.objectives)
        check_weights(self.name, self.objectives)
        check_targets_used(self.name, self.objectives, self.corruption)

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """The layers that a corpus must have been segmented into."""
        return self.corruption.required_units


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stretch of training with one mix of tasks, one row length and one batch size."""

    tasks: tuple[Task, ...]
    max_length: int
    batch_size: int
    """Rows in a step."""
    task_weights: tuple[float, ...] = (1.0,)
    """How often each task is drawn."""
    fraction: float = 1.0
    """The part of all steps that this stage lasts."""

    def __post_init__(self) -> None:
        if (
            len(self.task_weights) != len(self.tasks)
            or min(self.task_weights, default=-1) < 0
            or abs(sum(self.task_weights) - 1) > 1e-9
        ):
            raise RecipeError(
                f"A stage needs one or more tasks and a share for each, summing to 1; found {len(self.tasks)} tasks "
                f"and the shares {self.task_weights}."
            )
        names = [task.name for task in self.tasks]
        if len(set(names)) < len(names):
            raise RecipeError(
                f"The tasks of a stage need names of their own, because rows, draws and records go by them; found "
                f"{', '.join(names)}. Rename one."
            )
        for task in self.tasks:
            if task.examples.num_streams and (len(self.tasks) > 1 or task.examples.num_streams != self.batch_size):
                raise RecipeError(
                    "A stage that reads streams in order needs this task alone and a row of each stream in a step; "
                    f"task '{task.name}' has {task.examples.num_streams} streams, the stage {len(self.tasks)} tasks "
                    f"and {self.batch_size} rows in a step. Set num_streams and batch_size alike."
                )
        if self.max_length < 8 or self.batch_size < 1 or not 0 < self.fraction <= 1:
            raise RecipeError(
                f"A stage needs rows of at least 8 tokens, a batch of at least 1 and a share of the steps between 0 "
                f"and 1; found {self.max_length}, {self.batch_size} and {self.fraction}."
            )

    def resized(self, max_length: int, batch_size: int) -> Stage:
        """The stage with rows of another length, and another number of them in a step; of streams too."""
        tasks = tuple(
            replace(task, examples=replace(task.examples, num_streams=batch_size))
            if isinstance(task.examples, ContiguousStreams)
            else task
            for task in self.tasks
        )
        return replace(self, tasks=tasks, max_length=max_length, batch_size=batch_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A pre-training recipe of a member: the network, the stages and the optimization of its paper."""

    name: str
    year: int
    paper: str
    title: str
    summary: str
    """What the paper changed, in a few words."""
    parent: str
    """The member that it changed; empty for the root."""
    tokenizer: TokenizerTrainer
    stages: tuple[Stage, ...]
    network: NetworkConfig
    optim: OptimConfig
    masking: MaskingMode = DynamicMasking()
    loss_weighting: LossWeighting = LossWeighting.FIXED
    model_type: ModelType = ModelType.BERT
    """Whose names its networks are exported in."""

    def __post_init__(self) -> None:
        if not self.stages or abs(sum(stage.fraction for stage in self.stages) - 1) > 1e-9:
            found = ", ".join(f"{stage.fraction:g}" for stage in self.stages) or "no stages"
            raise RecipeError(f"{self.name}: the stages' shares of the steps must sum to 1, found {found}.")
        for task in self.tasks:
            self.network.check_attention(f"{self.name}: task '{task.name}'", task.attention)
            # A network with one kind of segment ignores them; any other must have them all.
            if 1 < self.network.num_segments < task.examples.num_segments:
                raise RecipeError(
                    f"{self.name}: the rows of task '{task.name}' have {task.examples.num_segments} kinds of segment, "
                    f"but the network knows {self.network.num_segments}. Set "
                    f"network.num_segments={task.examples.num_segments}."
                )

        check_shared_heads(self.name, [one for task in self.tasks for one in task.objectives])
        for one in self.objectives:
            one.check(self.network)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task of every stage, each once."""
        return tuple(dict.fromkeys(task for stage in self.stages for task in stage.tasks))

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Everything that is learned, each once; two that share a name share a head."""
        return tuple({one.name: one for task in self.tasks for one in task.objectives}.values())

    @property
    def max_length(self) -> int:
        """The longest row of any stage: how many positions a network needs."""
        return max(stage.max_length for stage in self.stages)

    @property
    def required_units(self) -> frozenset[UnitKind]:
        """The layers that a corpus must have been segmented into."""
        return frozenset({UnitKind.SENTENCE}).union(*(task.required_units for task in self.tasks))

    def check_corpus(self, units: frozenset[UnitKind], folder: str) -> None:
        """Refuse a corpus that was not segmented into what this recipe reads."""
        missing = self.required_units - units
        if missing:
            have = ", ".join(sorted(units))
            # Words and sentences are always found; phrases and entities only on request.
            units_option = ",".join(sorted(missing & {UnitKind.PHRASE, UnitKind.ENTITY}))
            options = f"--for {self.name} --units {units_option}" if units_option else f"--for {self.name}"
            raise RecipeError(
                f"{self.name} reads {', '.join(sorted(self.required_units))} units, but the corpus in {folder} was "
                f"prepared with {have} only. Prepare it with: unmask prepare CORPUS {options} --out NEW_FOLDER"
            )
