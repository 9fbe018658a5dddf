"""What a dialogue task claims about its rows is found out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pytest

from unmask.audits.audit import audit
from unmask.core.rng import Key
from unmask.data.corpus.corpus import Corpus
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.input_formats.dialogues import Dialogues
from unmask.data.input_formats.row_plan import RowPlan
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import DLM
from unmask.tasks.recipe import Task


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
        (Mumbler(), ["tokens without a speaker"]),
    ],
)
def test_faults_are_found(examples: Dialogues, broken: list[str], corpus: Corpus) -> None:
    found = audit(task(examples), corpus, Key.of(5), lengths=(128,))
    assert [finding.name for finding in found.broken] == broken
