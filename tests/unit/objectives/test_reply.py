"""Real or fake: two classes from the first token, and only where rows state it."""

from __future__ import annotations

import pytest

from unmask.config.network import TransformerConfig
from unmask.core.errors import RecipeError
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.input_formats.dialogues import Dialogues
from unmask.data.input_formats.pairs import SegmentPairs
from unmask.objectives.mlm import MLM
from unmask.objectives.sentence_pair import DLM, NSP
from unmask.tasks.recipe import Task


def test_the_head_has_two_classes() -> None:
    trunk = TransformerConfig(depth=1, width=8, heads=2, ffn_width=16, num_segments=4)
    head = DLM.build_head(trunk.build(10, 8))
    assert DLM.name == "reply"
    assert head.fact == "reply"
    assert head.row_head.classify.out_features == 2


def test_it_needs_rows_that_state_it() -> None:
    assert (
        Task(name="talk", examples=Dialogues(), corruption=MaskTokens(), objectives=(MLM(), DLM)).objectives[1] is DLM
    )
    with pytest.raises(RecipeError, match="needs the fact 'reply', but SegmentPairs states next"):
        Task(name="talk", examples=SegmentPairs(), corruption=MaskTokens(), objectives=(MLM(), DLM))
    with pytest.raises(RecipeError, match="needs the fact 'next', but Dialogues states reply"):
        Task(name="talk", examples=Dialogues(), corruption=MaskTokens(), objectives=(MLM(), NSP))
