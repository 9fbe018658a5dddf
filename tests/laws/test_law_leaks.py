"""Law 5, No leak: no prediction can reach the input that holds its answer, proven on the view of every task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from law_corpus import invented
from law_subjects import Subject, plan_of, subjects

from unmask.config.attention_pattern import (
    BIDIRECTIONAL_LM,
    CAUSAL,
    FULL,
    XLNET_STREAMS,
    AttentionPattern,
    FactorizationOrder,
    Full,
    RowCoordinates,
    find_leaks,
    next_token_sites,
    own_token_sites,
    single_stream,
)
from unmask.core.errors import RecipeError
from unmask.core.records import Cloze, InputsAndTargets, PermutedTarget
from unmask.data.corrupt.factorization_order import PermutationOrder
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.corrupt.protocol import Corruption
from unmask.data.input_formats.packed import Packed
from unmask.objectives.language_model import CLM, PLM, BidirectionalLM
from unmask.objectives.protocol import Objective
from unmask.tasks.recipe import Task

every_subject = pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)


@st.composite
def layouts(draw: st.DrawFn) -> RowCoordinates:
    """Rows of up to 12 positions with any source, any documents and any drawn order of some of them."""
    length = draw(st.integers(1, 12))
    order = draw(st.permutations(range(length)))
    asked = draw(st.integers(0, length))
    rank = [place if place < asked else -1 for place in order]
    document = np.cumsum(draw(st.lists(st.booleans(), min_size=length, max_size=length))).tolist()
    return RowCoordinates.of(length, prefix=draw(st.integers(0, length)), document=document, rank=rank)


@every_subject
def test_no_objective_can_look_up_its_answer_on_any_row(subject: Subject) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(layouts())
    def law(layout: RowCoordinates) -> None:
        for objective in subject.task.objectives:
            question = objective.prediction_sites(layout)
            assert find_leaks(subject.task.attention, layout, question.sites, question.hidden) == []

    law()


@every_subject
def test_no_answer_of_a_real_row_is_in_its_sight(subject: Subject) -> None:
    corpus = invented(documents=4)
    plan = plan_of(subject.task.examples, corpus, 32, 3)
    for visit in range(8):
        layout, hidden = _seen(subject.batch(corpus, plan, np.array([visit]), 3))
        for objective in subject.task.objectives:
            question = objective.prediction_sites(layout)
            assert set(question.hidden) <= hidden
            assert find_leaks(subject.task.attention, layout, question.sites, sorted(hidden)) == []


def _seen(instance: InputsAndTargets) -> tuple[RowCoordinates, set[int]]:
    """The coordinates of a row as its own targets state them, and the positions whose input was replaced."""
    inputs, target = instance.inputs, instance.targets[0]
    asked = target.positions.tolist() if isinstance(target, Cloze | PermutedTarget) else []
    rank = np.full(len(inputs.ids), -1)
    rank[asked] = target.rank[target.positions] if isinstance(target, PermutedTarget) else np.arange(len(asked))
    layout = RowCoordinates.of(len(inputs.ids), document=inputs.document.tolist(), rank=rank.tolist())
    return layout, set(asked) if isinstance(target, Cloze) else set()


def test_the_proof_itself_finds_leaks() -> None:
    """A proof that never objects would prove nothing."""
    layout = RowCoordinates.of(6, rank=[-1, 0, 1, -1, 2, -1])
    assert len(find_leaks(FULL, layout, next_token_sites(layout))) == 5
    assert len(find_leaks(FULL, layout, own_token_sites((1, 2, 4)))) == 3
    assert find_leaks(FULL, layout, own_token_sites((1, 2, 4)), hidden=(1, 2, 4)) == []


FORWARD, BACKWARD = BIDIRECTIONAL_LM.streams
CONTENT, QUERY = XLNET_STREAMS.streams
MISTAKES: dict[str, tuple[Corruption, Objective, AttentionPattern]] = {
    "a causal loss under a full view": (NoCorruption(), CLM(), FULL),
    "a one-stream XLNet": (PermutationOrder(), PLM(stream="main"), single_stream(FactorizationOrder(False))),
    "a one-stream XLNet that looks strictly back": (
        PermutationOrder(),
        PLM(stream="main"),
        single_stream(FactorizationOrder(True)),
    ),
    "an XLNet whose query sees its own content": (
        PermutationOrder(),
        PLM(),
        AttentionPattern((CONTENT, replace(QUERY, rule=FactorizationOrder(False)))),
    ),
    "an ELMo whose directions mix": (
        NoCorruption(),
        BidirectionalLM(),
        AttentionPattern((FORWARD, replace(BACKWARD, reads_from="forward"))),
    ),
    "an ELMo that looks both ways": (
        NoCorruption(),
        BidirectionalLM(),
        AttentionPattern((replace(FORWARD, rule=Full()), BACKWARD)),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_deliberate_mistake_is_refused(mistake: str) -> None:
    corrupt, objective, view = MISTAKES[mistake]
    with pytest.raises(RecipeError, match=r"can see its own answer: .* must not know token .*Choose a view") as caught:
        Task(name="wrong", examples=Packed(), corruption=corrupt, objectives=(objective,), attention=view)
    assert type(objective).__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("corrupt", "objective", "view"),
    [
        (NoCorruption(), CLM(), CAUSAL),
        (NoCorruption(), BidirectionalLM(), BIDIRECTIONAL_LM),
        (PermutationOrder(), PLM(), XLNET_STREAMS),
    ],
    ids=["causal", "two directions", "two streams"],
)
def test_the_same_parts_put_together_rightly_are_accepted(
    corrupt: Corruption, objective: Objective, view: AttentionPattern
) -> None:
    assert (
        Task(name="right", examples=Packed(), corruption=corrupt, objectives=(objective,), attention=view).attention
        == view
    )
