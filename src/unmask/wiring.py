"""What of a task cannot be put together: the refusals, each in a sentence.

What arrives: the parts of a task. What leaves: nothing, where they fit.
What never happens here: a guess at what was meant. The sentence says who, what it needs, what was found, what to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, is_dataclass

from unmask.corrupt.part import Corrupt
from unmask.errors import RecipeError
from unmask.examples.plan import Examples
from unmask.objectives.part import Ahead, Behind, Objective
from unmask.records import Fact
from unmask.views import Layout, View, leaks

_SAMPLE = Layout.of(8, prefix=2, rank=[-1, -1, 0, -1, 2, -1, 1, -1])
_TWO_DOCUMENTS = Layout.of(8, document=[0, 0, 0, 0, 1, 1, 1, 1])


def check_fed(task: str, objective: Objective, examples: Examples, corrupt: Corrupt) -> None:
    """An objective needs its kind of target and its facts."""
    if objective.reads is not Fact and objective.reads not in corrupt.makes:
        made = " and ".join(kind.__name__ for kind in corrupt.makes)
        raise RecipeError(
            f"Task '{task}': {_name(objective)} needs a {objective.reads.__name__}, but {_name(corrupt)} makes a "
            f"{made}. Exchange one of the two."
        )
    missing = objective.facts - examples.gives
    if missing:
        given = ", ".join(sorted(examples.gives)) or "no facts"
        raise RecipeError(
            f"Task '{task}': {_name(objective)} needs the fact '{min(missing)}', but {_name(examples)} states {given}. "
            "Build rows that state it, or learn something else."
        )


def check_sight(task: str, objective: Objective, view: View) -> None:
    """No objective sees its own answer."""
    question = objective.asks(_SAMPLE)
    found = leaks(view, _SAMPLE, question.answers, question.hidden)
    if found:
        raise RecipeError(
            f"Task '{task}': under this view {_name(objective)} can see its own answer: {found[0].explain()}. Choose a "
            "view that hides it."
        )


def check_borders(task: str, examples: Examples, view: View) -> None:
    """Documents that are kept apart do not see each other."""
    across = any(stream.rule.allows(_TWO_DOCUMENTS)[:4, 4:].any() for stream in view.streams)
    if examples.apart and across:
        raise RecipeError(
            f"Task '{task}': {_name(examples)} keeps the documents of a row apart, but under this view they see each "
            "other. Take the view DOCUMENTS, or rows that may run across documents."
        )


def check_order(task: str, learns: Sequence[Objective]) -> None:
    """Who asks about what another one wrote needs that one; and what is written must be read."""
    ahead = [one for one in learns if isinstance(one, Ahead)]
    for one in learns:
        if isinstance(one, Behind) and not any(isinstance(other, one.follows) for other in ahead):
            raise RecipeError(
                f"Task '{task}': {_name(one)} asks about tokens that a {one.follows.__name__} has written, but the "
                f"task has none. Learn a {one.follows.__name__} beside it."
            )
    if len(ahead) > 1 or len(ahead) == len(learns) > 0:
        found = "it is alone" if len(learns) == 1 else f"there are {len(ahead)}"
        raise RecipeError(
            f"Task '{task}': {_name(ahead[0])} writes what the trunk is shown, for others to read; it must be the only "
            f"one to write and not the only one to learn, but {found}. Learn it with, for example, Replaced or MLM."
        )


def check_weights(task: str, learns: Sequence[Objective]) -> None:
    """Every objective is learned once, and none is unlearned."""
    name, times = Counter(one.name for one in learns).most_common(1)[0] if learns else ("", 0)
    if times > 1:
        raise RecipeError(f"Task '{task}' learns the same objective twice: '{name}'. Give it a weight instead.")
    for one in learns:
        if one.weight < 0:
            raise RecipeError(
                f"Task '{task}': {_name(one)} needs a weight of at least 0, found {one.weight:g}. A loss is never made "
                "larger on purpose."
            )


def check_read(task: str, learns: Sequence[Objective], corrupt: Corrupt) -> None:
    """What a corruption asks for is said by somebody."""
    for made in corrupt.makes:
        if not any(objective.reads is made for objective in learns):
            raise RecipeError(
                f"Task '{task}': {_name(corrupt)} asks for a {made.__name__}, but no objective reads it. Add one that "
                "does, or take another corruption."
            )


def check_one_head(recipe: str, learns: Sequence[Objective]) -> None:
    """Objectives of one name share a head, so they may differ in nothing but their weight."""
    heads: dict[str, Objective] = {}
    for one in learns:
        other = heads.setdefault(one.name, one)
        if _but_weight(one) != _but_weight(other):
            raise RecipeError(
                f"{recipe}: two tasks learn '{one.name}' with one head, but one says {other} and the other {one}. Only "
                "their weights may differ; set the rest alike."
            )


def _but_weight(objective: Objective) -> tuple[object, ...]:
    """All that is set on an objective except its weight."""
    assert is_dataclass(objective), "an objective is its own configuration"
    return type(objective), *(getattr(objective, one.name) for one in fields(objective) if one.name != "weight")


def _name(part: object) -> str:
    return type(part).__name__
