"""Task, Stage, Recipe: how parts are put together, and the refusal of what cannot work.

What arrives: parts. What leaves: values that can be compared, saved and run.
What never happens here: a wiring mistake that shows only in training. It is refused at once, by `wiring.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from unmask.corrupt.part import Corrupt
from unmask.dialect import Dialect
from unmask.errors import RecipeError
from unmask.examples.plan import Examples
from unmask.examples.visits import EveryVisit, Renew
from unmask.nets.trunk import Trunk
from unmask.objectives.part import Ahead, Objective
from unmask.optimising import Balance, Descent
from unmask.records import Layer
from unmask.tokenize.spec import Spec
from unmask.views import ENCODER, View
from unmask.wiring import check_borders, check_fed, check_one_head, check_order, check_read, check_sight, check_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One way of learning from text: how rows are made, what is hidden, who sees whom, what must be said."""

    name: str
    examples: Examples
    corrupt: Corrupt
    learns: tuple[Objective, ...]
    view: View = ENCODER

    def __post_init__(self) -> None:
        check_borders(self.name, self.examples, self.view)
        for objective in self.learns:
            check_fed(self.name, objective, self.examples, self.corrupt)
            check_sight(self.name, objective, self.view)
        check_order(self.name, self.learns)
        check_weights(self.name, self.learns)
        check_read(self.name, self.learns, self.corrupt)

    @property
    def needs(self) -> frozenset[Layer]:
        """The layers that a corpus must have been segmented into."""
        return self.corrupt.needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stretch of training with one mix of tasks, one row length and one batch size."""

    tasks: tuple[Task, ...]
    length: int
    batch: int
    """Rows in a step."""
    shares: tuple[float, ...] = (1.0,)
    """How often each task is drawn."""
    share: float = 1.0
    """The part of all steps that this stage lasts."""

    def __post_init__(self) -> None:
        if len(self.shares) != len(self.tasks) or min(self.shares, default=-1) < 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise RecipeError(
                f"A stage needs one or more tasks and a share for each, summing to 1; found {len(self.tasks)} tasks "
                f"and the shares {self.shares}."
            )
        names = [task.name for task in self.tasks]
        if len(set(names)) < len(names):
            raise RecipeError(
                f"The tasks of a stage need names of their own, because rows, draws and records go by them; found "
                f"{', '.join(names)}. Rename one."
            )
        if self.length < 8 or self.batch < 1 or not 0 < self.share <= 1:
            raise RecipeError(
                f"A stage needs rows of at least 8 tokens, a batch of at least 1 and a share of the steps between 0 "
                f"and 1; found {self.length}, {self.batch} and {self.share}."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A member of the family: the science of a paper, and nothing of the logistics."""

    name: str
    year: int
    paper: str
    title: str
    changed: str
    """What the paper changed, in a few words."""
    parent: str
    """The member that it changed; empty for the root."""
    tokenizer: Spec
    stages: tuple[Stage, ...]
    trunk: Trunk
    descent: Descent
    renew: Renew = EveryVisit()
    balance: Balance = Balance.FIXED
    dialect: Dialect = Dialect.BERT
    """Whose names its networks are exported in."""

    def __post_init__(self) -> None:
        if not self.stages or abs(sum(stage.share for stage in self.stages) - 1) > 1e-9:
            found = ", ".join(f"{stage.share:g}" for stage in self.stages) or "no stages"
            raise RecipeError(f"{self.name}: the stages' shares of the steps must sum to 1, found {found}.")
        for task in self.tasks:
            # A trunk with one kind of segment does not tell them apart; any other must know them all.
            if 1 < self.trunk.segments < task.examples.segments:
                raise RecipeError(
                    f"{self.name}: the rows of task '{task.name}' have {task.examples.segments} kinds of segment, but "
                    f"the trunk knows {self.trunk.segments}. Set trunk.segments={task.examples.segments}."
                )

        check_one_head(self.name, [one for task in self.tasks for one in task.learns])
        for one in self.objectives:
            if isinstance(one, Ahead):
                one.check(self.trunk)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Every task of every stage, each once."""
        return tuple(dict.fromkeys(task for stage in self.stages for task in stage.tasks))

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Everything that is learned, each once; two that share a name share a head."""
        return tuple({one.name: one for task in self.tasks for one in task.learns}.values())

    @property
    def length(self) -> int:
        """The longest row of any stage: how many positions a network needs."""
        return max(stage.length for stage in self.stages)

    @property
    def needs(self) -> frozenset[Layer]:
        """The layers that a corpus must have been segmented into."""
        return frozenset({Layer.SENTENCE}).union(*(task.needs for task in self.tasks))

    def check(self, layers: frozenset[Layer], folder: str) -> None:
        """Refuse a corpus that was not segmented into what this recipe reads."""
        missing = self.needs - layers
        if missing:
            have = ", ".join(sorted(layers))
            # Words and sentences are always found; phrases and entities only where they are asked for.
            asked = ",".join(sorted(missing & {Layer.PHRASE, Layer.ENTITY}))
            wish = f"--for {self.name} --layers {asked}" if asked else f"--for {self.name}"
            raise RecipeError(
                f"{self.name} reads {', '.join(sorted(self.needs))} units, but the corpus in {folder} was prepared "
                f"with {have} only. Prepare it with: unmask prepare CORPUS {wish} --out NEW_FOLDER"
            )
