"""What must be said, in readable form: the targets of one row with their tokens written out.

What arrives: a task, one corrupted row and its trace. What leaves: answers to be given at places, a text to be written,
or a sentence about the row.
What never happens here: a target that is left out. Every target of the instance appears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unmask.corrupt.fragment import Fragment
from unmask.objectives.every import Every
from unmask.objectives.guess import Guess
from unmask.objectives.pair import Truth
from unmask.objectives.part import Objective
from unmask.objectives.replaced import Replaced
from unmask.objectives.sbo import SBO
from unmask.records import (
    Among,
    Amount,
    Cloze,
    Continue,
    Extract,
    Fact,
    Instance,
    Labels,
    NextToken,
    Ordering,
    Rewrite,
    Tags,
    Target,
)
from unmask.tasks import Task
from unmask.tokenize.vocab import Vocab
from unmask.walk.names import Names
from unmask.walk.trace import Fate, Traced
from unmask.walk.wording import count


@dataclass(frozen=True, slots=True)
class Answer:
    """At this place of the input, which shows one token, another one must be said."""

    place: int
    shown: str
    says: str
    fate: Fate
    group: int


@dataclass(frozen=True, slots=True)
class Answers:
    """Tokens that must be said at places of the input; in turn, or all at once."""

    how: str
    answers: tuple[Answer, ...]
    in_turn: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """One token of a text that must be written."""

    token: str
    fate: Fate
    group: int


@dataclass(frozen=True, slots=True)
class Script:
    """A text that a decoder must write, token by token."""

    how: str
    tokens: tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class Saying:
    """Something else that must be said, as a sentence."""

    how: str


Asked: TypeAlias = Answers | Script | Saying

_FACTS = {
    Truth.NEXT: ("B really follows A", "B comes from another document"),
    Truth.ORDER: ("A and B stand in their true order", "A and B were swapped"),
    Truth.PAIR: ("A and B stand in their true order", "A and B were swapped", "B comes from another document"),
    Truth.REPLY: ("every turn belongs to this conversation", "one turn comes from another conversation"),
}


def asked(task: Task, instance: Instance, steps: Sequence[Traced], vocab: Vocab, names: Names) -> tuple[Asked, ...]:
    """Everything that one row asks for, in the order of its targets."""
    found = [_one(target, instance, steps, vocab, names) for target in instance.targets]
    if any(isinstance(objective, SBO) for objective in task.learns):
        found.insert(1, _borders(steps[-1], names(instance.inputs.ids)))
    if any(isinstance(objective, Guess) for objective in task.learns):
        found += [_after_guess(objective, instance) for objective in task.learns]
    return tuple(found)


def _one(target: Target, instance: Instance, steps: Sequence[Traced], vocab: Vocab, names: Names) -> Asked:
    places = steps[-1].places
    shown = names(instance.inputs.ids)
    match target:
        case Cloze(positions, answers):
            said = _answers(positions.tolist(), names(answers), shown, steps[-1])
            return Answers(f"say the true token at {count(len(said), 'place')}, all at once", said)
        case Ordering(rank, positions, answers):
            order = np.argsort(rank[positions])
            said = _answers(positions[order].tolist(), names(answers[order]), shown, steps[-1])
            return Answers(
                "in the drawn order: each turn sees the tokens that were not chosen, and the turns before it",
                said,
                in_turn=True,
            )
        case NextToken(weights):
            here = np.flatnonzero(weights[:-1])
            pairs = ((i, shown[i], shown[i + 1], places[i].fate, 0) for i in here.tolist())
            return Answers("say the next token at every place but the last", tuple(Answer(*pair) for pair in pairs))
        case Rewrite():
            return _script(target, steps, vocab, names)
        case Fact(name, value):
            return _fact(name, int(value[0]))
        case Amount(name, value):
            return Saying(f"from the first token: a number ({name} = {value[0]:g})")
        case Continue() | Labels() | Tags() | Extract() | Among():
            raise AssertionError(f"only a task file asks for {type(target).__name__}, no member does")


def _answers(positions: list[int], says: Sequence[str], shown: Sequence[str], step: Traced) -> tuple[Answer, ...]:
    places = step.places
    pairs = zip(positions, says, strict=True)
    return tuple(Answer(at, shown[at], said, places[at].fate, places[at].group) for at, said in pairs)


def _script(target: Rewrite, steps: Sequence[Traced], vocab: Vocab, names: Names) -> Script:
    """The text to be written. What was hidden keeps the number of its span."""
    group = {at: number for step in steps for number, span in enumerate(step.chosen, 1) for at in span.origins}
    special, sentinels = {vocab.cls, vocab.sep}, set(vocab.sentinels.tolist())
    tokens = []
    for token, name, at in zip(target.ids.tolist(), names(target.ids), target.position.tolist(), strict=True):
        hidden = Fate.MASK if at in group else Fate.SHOWN
        fate = Fate.SENTINEL if token in sentinels else Fate.SPECIAL if token in special else hidden
        tokens.append(Written(name, fate, group.get(at, 0)))
    where = ", at the places where they stood" if isinstance(steps[-1].part, Fragment) else ""
    return Script(f"a decoder writes {count(len(tokens), 'token')}, from left to right{where}", tuple(tokens))


def _borders(step: Traced, shown: Sequence[str]) -> Saying:
    """SBO: what stands on both sides of each span that touches neither end of the text."""
    sides = [
        f"{shown[span.places[0] - 1]} … {shown[span.places[-1] + 1]} for span {number}"
        for number, span in enumerate(step.chosen, start=1)
        if span.places[0] > 1 and span.places[-1] < len(shown) - 2
    ]
    if not sides:
        return Saying("no span stands between two borders, so nothing is said from borders alone (SBO)")
    return Saying("each span is also said from its two borders alone (SBO): " + ", ".join(sides))


def _after_guess(objective: Objective, instance: Instance) -> Saying:
    """What a generator does with the masks, or what is learned from the text with its guesses in it."""
    match objective:
        case Guess():
            return Saying(
                "a small network, the generator, says them; a token is drawn from each of its guesses, and the network "
                "itself is shown the text with these tokens, right or wrong, and without any mask"
            )
        case Replaced():
            asked_for = count(objective.asked(instance), "token")
            return Saying(
                f"of {asked_for}: is it the text's own, or was it replaced? (a right guess is the text's own)"
            )
        case Every():
            return Saying(f"the true token at all {count(objective.asked(instance), 'place')}; a gate may copy it")
        case _:
            return Saying(f"from the text with guesses in it: {objective.name}")


def _fact(name: str, value: int) -> Saying:
    told = _FACTS[Truth(name)][value] if name in {truth.value for truth in Truth} else str(value)
    return Saying(f"from the first token: {told} ({name} = {value})")
