"""What a dialogue task claims about its rows is found out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pytest

from unmask.audit.run import audit
from unmask.corrupt.mask_out import MaskTokens
from unmask.examples.dialogues import Dialogues
from unmask.examples.plan import RowPlan
from unmask.keys import Key
from unmask.objectives.mlm import MLM
from unmask.objectives.pair import DLM
from unmask.shards.corpus import Corpus
from unmask.tasks import Task


def task(examples: Dialogues) -> Task:
    return Task(name="talk", examples=examples, corruption=MaskTokens(), objectives=(MLM(), DLM))


@dataclass(frozen=True, slots=True)
class Liar(Dialogues):
    """Says that every row is real."""

    def plan(self, corpus: Corpus, length: int, key: Key) -> RowPlan:
        plan = Dialogues.plan(self, corpus, length, key)
        return replace(plan, facts=MappingProxyType({"reply": np.zeros(len(plan), dtype=np.int8)}))


@dataclass(frozen=True, slots=True)
class Mumbler(Dialogues):
    """Nobody speaks."""

    def plan(self, corpus: Corpus, length: int, key: Key) -> RowPlan:
        plan = Dialogues.plan(self, corpus, length, key)
        return replace(plan, segment=np.zeros_like(plan.segment))


def test_sound_rows_hold(corpus: Corpus) -> None:
    found = audit(task(Dialogues()), corpus, Key.of(5), lengths=(128,))
    assert found.holds
    names = [finding.name for finding in found.sections[0].findings]
    assert "reply: rows with a fake turn" in names


@pytest.mark.parametrize(
    ("examples", "broken"),
    [
        (Liar(), ["reply: rows with a fake turn", "reply: rows their documents contradict"]),
        (Mumbler(), ["tokens that nobody speaks"]),
    ],
)
def test_faults_are_found(examples: Dialogues, broken: list[str], corpus: Corpus) -> None:
    found = audit(task(examples), corpus, Key.of(5), lengths=(128,))
    assert [finding.name for finding in found.broken] == broken
