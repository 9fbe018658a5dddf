"""Law 5, No leak: no prediction can reach the input that holds its answer, proven on the view of every task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from law_corpus import invented
from law_subjects import Subject, plan_of, subjects

from unmask.corrupt.nothing import Nothing
from unmask.corrupt.order import Order
from unmask.corrupt.part import Corrupt
from unmask.errors import RecipeError
from unmask.examples.packed import Packed
from unmask.objectives.language import CLM, PLM, BothWays
from unmask.objectives.part import Objective
from unmask.records import Cloze, Instance, Ordering
from unmask.tasks import Task
from unmask.views import (
    CAUSAL,
    ENCODER,
    TWO_DIRECTIONS,
    TWO_STREAMS,
    Drawn,
    Everything,
    Layout,
    View,
    following,
    in_place,
    leaks,
    single,
)

every_subject = pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Rows of up to 12 positions with any source, any documents and any drawn order of some of them."""
    length = draw(st.integers(1, 12))
    order = draw(st.permutations(range(length)))
    asked = draw(st.integers(0, length))
    rank = [place if place < asked else -1 for place in order]
    document = np.cumsum(draw(st.lists(st.booleans(), min_size=length, max_size=length))).tolist()
    return Layout.of(length, prefix=draw(st.integers(0, length)), document=document, rank=rank)


@every_subject
def test_no_objective_can_look_up_its_answer_on_any_row(subject: Subject) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(layouts())
    def law(layout: Layout) -> None:
        for objective in subject.task.learns:
            question = objective.asks(layout)
            assert leaks(subject.task.view, layout, question.answers, question.hidden) == []

    law()


@every_subject
def test_no_answer_of_a_real_row_is_in_its_sight(subject: Subject) -> None:
    corpus = invented(documents=4)
    plan = plan_of(subject.task.examples, corpus, 32, 3)
    for visit in range(8):
        layout, hidden = _seen(subject.batch(corpus, plan, np.array([visit]), 3))
        for objective in subject.task.learns:
            question = objective.asks(layout)
            assert set(question.hidden) <= hidden
            assert leaks(subject.task.view, layout, question.answers, sorted(hidden)) == []


def _seen(instance: Instance) -> tuple[Layout, set[int]]:
    """The coordinates of a row as its own targets state them, and the positions whose input was replaced."""
    inputs, target = instance.inputs, instance.targets[0]
    asked = target.positions.tolist() if isinstance(target, Cloze | Ordering) else []
    rank = np.full(len(inputs.ids), -1)
    rank[asked] = target.rank[target.positions] if isinstance(target, Ordering) else np.arange(len(asked))
    layout = Layout.of(len(inputs.ids), document=inputs.document.tolist(), rank=rank.tolist())
    return layout, set(asked) if isinstance(target, Cloze) else set()


def test_the_proof_itself_finds_leaks() -> None:
    """A proof that never objects would prove nothing."""
    layout = Layout.of(6, rank=[-1, 0, 1, -1, 2, -1])
    assert len(leaks(ENCODER, layout, following(layout))) == 5
    assert len(leaks(ENCODER, layout, in_place((1, 2, 4)))) == 3
    assert leaks(ENCODER, layout, in_place((1, 2, 4)), hidden=(1, 2, 4)) == []


FORWARD, BACKWARD = TWO_DIRECTIONS.streams
CONTENT, QUERY = TWO_STREAMS.streams
MISTAKES: dict[str, tuple[Corrupt, Objective, View]] = {
    "a causal loss under a full view": (Nothing(), CLM(), ENCODER),
    "a one-stream XLNet": (Order(), PLM(stream="main"), single(Drawn(False))),
    "a one-stream XLNet that looks strictly back": (Order(), PLM(stream="main"), single(Drawn(True))),
    "an XLNet whose query sees its own content": (
        Order(),
        PLM(),
        View((CONTENT, replace(QUERY, rule=Drawn(False)))),
    ),
    "an ELMo whose directions mix": (
        Nothing(),
        BothWays(),
        View((FORWARD, replace(BACKWARD, reads_from="forward"))),
    ),
    "an ELMo that looks both ways": (Nothing(), BothWays(), View((replace(FORWARD, rule=Everything()), BACKWARD))),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_deliberate_mistake_is_refused(mistake: str) -> None:
    corrupt, objective, view = MISTAKES[mistake]
    with pytest.raises(RecipeError, match=r"can see its own answer: .* must not know token .*Choose a view") as caught:
        Task(name="wrong", examples=Packed(), corrupt=corrupt, learns=(objective,), view=view)
    assert type(objective).__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("corrupt", "objective", "view"),
    [(Nothing(), CLM(), CAUSAL), (Nothing(), BothWays(), TWO_DIRECTIONS), (Order(), PLM(), TWO_STREAMS)],
    ids=["causal", "two directions", "two streams"],
)
def test_the_same_parts_put_together_rightly_are_accepted(corrupt: Corrupt, objective: Objective, view: View) -> None:
    assert Task(name="right", examples=Packed(), corrupt=corrupt, learns=(objective,), view=view).view == view
