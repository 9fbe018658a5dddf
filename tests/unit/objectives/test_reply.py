"""Real or fake: two classes from the first token, and only where rows state it."""

from __future__ import annotations

import pytest
import torch

from unmask.corrupt.mask_out import MaskOut
from unmask.errors import RecipeError
from unmask.examples.dialogues import Dialogues
from unmask.examples.pairs import Pairs
from unmask.nets.trunk import Trunk
from unmask.objectives.mlm import MLM
from unmask.objectives.pair import DLM, NSP
from unmask.tasks import Task


def test_the_head_has_two_classes() -> None:
    trunk = Trunk(depth=1, width=8, heads=2, inner=16, segments=4)
    head = DLM.head(trunk, torch.nn.Embedding(10, 8))
    assert DLM.name == "reply"
    assert head.fact == "reply"
    assert head.row.classify.out_features == 2


def test_it_needs_rows_that_state_it() -> None:
    assert Task(name="talk", examples=Dialogues(), corrupt=MaskOut(), learns=(MLM(), DLM)).learns[1] is DLM
    with pytest.raises(RecipeError, match="needs the fact 'reply', but Pairs states next"):
        Task(name="talk", examples=Pairs(), corrupt=MaskOut(), learns=(MLM(), DLM))
    with pytest.raises(RecipeError, match="needs the fact 'next', but Dialogues states reply"):
        Task(name="talk", examples=Dialogues(), corrupt=MaskOut(), learns=(MLM(), NSP))
