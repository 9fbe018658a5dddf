"""Task, Stage, Recipe: how parts are put together, and the refusal of what cannot work.

What arrives: parts. What leaves: values that can be compared, saved and run.
What never happens here: a wiring mistake that shows only in training. It is refused here, in a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from unmask.corrupt.part import Corrupt
from unmask.dialect import Dialect
from unmask.errors import RecipeError
from unmask.examples.plan import Examples
from unmask.examples.visits import EveryVisit, Renew
from unmask.nets.trunk import Trunk
from unmask.objectives.part import Ahead, Behind, Objective
from unmask.optimising import Balance, Descent
from unmask.records import Fact, Layer
from unmask.tokenize.spec import Spec
from unmask.views import ENCODER, Layout, View, leaks

_SAMPLE = Layout.of(8, prefix=2, rank=[-1, -1, 0, -1, 2, -1, 1, -1])
_TWO_DOCUMENTS = Layout.of(8, document=[0, 0, 0, 0, 1, 1, 1, 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One way of learning from text: how rows are made, what is hidden, who sees whom, what must be said."""

    name: str
    examples: Examples
    corrupt: Corrupt
    learns: tuple[Objective, ...]
    view: View = ENCODER

    def __post_init__(self) -> None:
        if len(set(self.learns)) < len(self.learns):
            raise RecipeError(f"Task '{self.name}' learns the same objective twice. Give it a weight instead.")
        self._check_borders()
        for objective in self.learns:
            self._check_fed(objective)
            self._check_sight(objective)
        self._check_order()
        for made in self.corrupt.makes:
            if not any(objective.reads is made for objective in self.learns):
                raise RecipeError(
                    f"Task '{self.name}': {_name(self.corrupt)} asks for a {made.__name__}, but no objective reads it. "
                    f"Add one that does, or take another corruption."
                )

    @property
    def needs(self) -> frozenset[Layer]:
        """The layers that a corpus must have been segmented into."""
        return self.corrupt.needs

    def _check_fed(self, objective: Objective) -> None:
        if objective.reads is not Fact and objective.reads not in self.corrupt.makes:
            made = " and ".join(kind.__name__ for kind in self.corrupt.makes)
            raise RecipeError(
                f"Task '{self.name}': {_name(objective)} needs a {objective.reads.__name__}, but {_name(self.corrupt)} "
                f"makes a {made}. Exchange one of the two."
            )
        missing = objective.facts - self.examples.gives
        if missing:
            given = ", ".join(sorted(self.examples.gives)) or "no facts"
            raise RecipeError(
                f"Task '{self.name}': {_name(objective)} needs the fact '{min(missing)}', but {_name(self.examples)} "
                f"states {given}. Build rows that state it, or learn something else."
            )

    def _check_order(self) -> None:
        """Who asks about what another one wrote needs that one; and what is written must be read."""
        ahead = [one for one in self.learns if isinstance(one, Ahead)]
        for one in self.learns:
            if isinstance(one, Behind) and not any(isinstance(other, one.follows) for other in ahead):
                raise RecipeError(
                    f"Task '{self.name}': {_name(one)} asks about tokens that a {one.follows.__name__} has written, "
                    f"but the task has none. Learn a {one.follows.__name__} beside it."
                )
        if len(ahead) > 1 or len(ahead) == len(self.learns) > 0:
            found = "it is alone" if len(self.learns) == 1 else f"there are {len(ahead)}"
            raise RecipeError(
                f"Task '{self.name}': {_name(ahead[0])} writes what the trunk is shown, for others to read; it must be "
                f"the only one to write and not the only one to learn, but {found}. Learn it with, for example, "
                "Replaced or MLM."
            )

    def _check_borders(self) -> None:
        across = any(stream.rule.allows(_TWO_DOCUMENTS)[:4, 4:].any() for stream in self.view.streams)
        if self.examples.apart and across:
            raise RecipeError(
                f"Task '{self.name}': {_name(self.examples)} keeps the documents of a row apart, but under this view "
                "they see each other. Take the view DOCUMENTS, or rows that may run across documents."
            )

    def _check_sight(self, objective: Objective) -> None:
        question = objective.asks(_SAMPLE)
        found = leaks(self.view, _SAMPLE, question.answers, question.hidden)
        if found:
            raise RecipeError(
                f"Task '{self.name}': under this view {_name(objective)} can see its own answer: {found[0].explain()}. "
                "Choose a view that hides it."
            )


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


def _name(part: object) -> str:
    return type(part).__name__
