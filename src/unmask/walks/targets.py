"""The targets of one row in readable form.

They are tokens at positions, a text that a decoder generates, or a statement about the row. All targets of the row are
included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unmask.core.records import (
    AnswerSpan,
    CandidateGroups,
    Cloze,
    ContinuationTarget,
    DecoderTarget,
    InputsAndTargets,
    NextToken,
    PermutedTarget,
    RowClass,
    RowMultiLabel,
    RowValue,
    Target,
    TokenLabels,
)
from unmask.data.corrupt.mass_fragment import MassFragment
from unmask.data.tokenize.vocab import Vocab
from unmask.objectives.all_tokens_mlm import AllTokensMLM
from unmask.objectives.generator import Generator
from unmask.objectives.protocol import Objective
from unmask.objectives.rtd import RTD
from unmask.objectives.sbo import SBO
from unmask.objectives.sentence_pair import RowFact
from unmask.tasks.recipe import Task
from unmask.walks.describe import Names, pluralize
from unmask.walks.trace import TokenFate, TraceStep


@dataclass(frozen=True, slots=True)
class PredictedToken:
    """A position of the input whose token is to be predicted."""

    position: int
    input_token: str
    target_token: str
    fate: TokenFate
    group: int


@dataclass(frozen=True, slots=True)
class PredictedTokens:
    """Tokens to be predicted at positions of the input, in order or all at once."""

    description: str
    tokens: tuple[PredictedToken, ...]
    is_sequential: bool = False


@dataclass(frozen=True, slots=True)
class WrittenToken:
    """One token of a target text."""

    token: str
    fate: TokenFate
    group: int


@dataclass(frozen=True, slots=True)
class DecoderScript:
    """A text that a decoder generates, token by token."""

    description: str
    tokens: tuple[WrittenToken, ...]


@dataclass(frozen=True, slots=True)
class OtherTarget:
    """Another target, as a sentence."""

    description: str


ReadableTarget: TypeAlias = PredictedTokens | DecoderScript | OtherTarget

_FACTS = {
    RowFact.NEXT: ("B really follows A", "B comes from another document"),
    RowFact.ORDER: ("A and B are in their true order", "A and B were swapped"),
    RowFact.PAIR: ("A and B are in their true order", "A and B were swapped", "B comes from another document"),
    RowFact.REPLY: ("every turn belongs to this conversation", "one turn comes from another conversation"),
}


def readable_targets(
    task: Task, instance: InputsAndTargets, steps: Sequence[TraceStep], vocab: Vocab, names: Names
) -> tuple[ReadableTarget, ...]:
    """All targets of one row, in order."""
    found = [_readable_target(target, instance, steps, vocab, names) for target in instance.targets]
    if any(isinstance(objective, SBO) for objective in task.objectives):
        found.insert(1, _span_borders(steps[-1], names(instance.inputs.ids)))
    if any(isinstance(objective, Generator) for objective in task.objectives):
        found += [_target_after_generator(objective, instance) for objective in task.objectives]
    return tuple(found)


def _readable_target(
    target: Target, instance: InputsAndTargets, steps: Sequence[TraceStep], vocab: Vocab, names: Names
) -> ReadableTarget:
    places = steps[-1].positions
    shown = names(instance.inputs.ids)
    match target:
        case Cloze(positions, answers):
            tokens = _predicted_tokens(positions.tolist(), names(answers), shown, steps[-1])
            return PredictedTokens(f"predict the true token at {pluralize(len(tokens), 'place')}, all at once", tokens)
        case PermutedTarget(rank, positions, answers):
            order = np.argsort(rank[positions])
            tokens = _predicted_tokens(positions[order].tolist(), names(answers[order]), shown, steps[-1])
            return PredictedTokens(
                "in the drawn order: each prediction uses the tokens that were not chosen and the earlier ones",
                tokens,
                is_sequential=True,
            )
        case NextToken(weights):
            here = np.flatnonzero(weights[:-1])
            pairs = ((i, shown[i], shown[i + 1], places[i].fate, 0) for i in here.tolist())
            return PredictedTokens(
                "predict the next token at every place but the last", tuple(PredictedToken(*pair) for pair in pairs)
            )
        case DecoderTarget():
            return _decoder_script(target, steps, vocab, names)
        case RowClass(name, value):
            return _row_fact(name, int(value[0]))
        case RowValue(name, value):
            return OtherTarget(f"from the first token: a number ({name} = {value[0]:g})")
        case ContinuationTarget() | RowMultiLabel() | TokenLabels() | AnswerSpan() | CandidateGroups():
            raise AssertionError(f"only a task file asks for {type(target).__name__}, no member does")


def _predicted_tokens(
    positions: list[int], tokens: Sequence[str], shown: Sequence[str], step: TraceStep
) -> tuple[PredictedToken, ...]:
    places = step.positions
    pairs = zip(positions, tokens, strict=True)
    return tuple(PredictedToken(at, shown[at], token, places[at].fate, places[at].group) for at, token in pairs)


def _decoder_script(target: DecoderTarget, steps: Sequence[TraceStep], vocab: Vocab, names: Names) -> DecoderScript:
    """The target text. Removed tokens have the number of their span."""
    group = {at: number for step in steps for number, span in enumerate(step.selected_spans, 1) for at in span.origins}
    special, sentinels = {vocab.cls, vocab.sep}, set(vocab.sentinels.tolist())
    tokens = []
    for token, name, at in zip(target.ids.tolist(), names(target.ids), target.position.tolist(), strict=True):
        hidden = TokenFate.MASK if at in group else TokenFate.SHOWN
        fate = TokenFate.SENTINEL if token in sentinels else TokenFate.SPECIAL if token in special else hidden
        tokens.append(WrittenToken(name, fate, group.get(at, 0)))
    where = ", at the places where they stood" if isinstance(steps[-1].corruption, MassFragment) else ""
    return DecoderScript(
        f"a decoder writes {pluralize(len(tokens), 'token')}, from left to right{where}", tuple(tokens)
    )


def _span_borders(step: TraceStep, shown: Sequence[str]) -> OtherTarget:
    """SBO: the tokens at both borders of each span that touches neither end of the text."""
    sides = [
        f"{shown[span.positions[0] - 1]} … {shown[span.positions[-1] + 1]} for span {number}"
        for number, span in enumerate(step.selected_spans, start=1)
        if span.positions[0] > 1 and span.positions[-1] < len(shown) - 2
    ]
    if not sides:
        return OtherTarget("no span is between two borders, so nothing is predicted from borders alone (SBO)")
    return OtherTarget("each span is also predicted from its two borders alone (SBO): " + ", ".join(sides))


def _target_after_generator(objective: Objective, instance: InputsAndTargets) -> OtherTarget:
    """What a generator does with the masks, or what is predicted from the text with its samples."""
    match objective:
        case Generator():
            return OtherTarget(
                "a small network, the generator, predicts them; a token is sampled from each prediction, and the "
                "network reads the text with these tokens, right or wrong, and without any mask"
            )
        case RTD():
            predicted = pluralize(objective.num_predictions(instance), "token")
            return OtherTarget(f"for {predicted}: original or replaced? (a correct sample counts as original)")
        case AllTokensMLM():
            return OtherTarget(
                f"the true token at all {pluralize(objective.num_predictions(instance), 'place')}; a gate may copy it"
            )
        case _:
            return OtherTarget(f"from the text with guesses in it: {objective.name}")


def _row_fact(name: str, value: int) -> OtherTarget:
    fact = _FACTS[RowFact(name)][value] if name in {truth.value for truth in RowFact} else str(value)
    return OtherTarget(f"from the first token: {fact} ({name} = {value})")
