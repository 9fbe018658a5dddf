"""Who writes what others read: a task without the one or the other is refused."""

from __future__ import annotations

import pytest

from unmask.core.codec import override
from unmask.core.errors import RecipeError
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.input_formats.pairs import SegmentPairs
from unmask.members import member
from unmask.objectives.all_tokens_mlm import AllTokensMLM
from unmask.objectives.generator import Generator
from unmask.objectives.mlm import MLM
from unmask.objectives.protocol import Objective
from unmask.objectives.rtd import RTD
from unmask.objectives.sentence_pair import NSP
from unmask.tasks.recipe import Task


def task(*learns: Objective) -> Task:
    return Task(name="detect", examples=SegmentPairs(), corruption=MaskTokens(), objectives=learns)


@pytest.mark.parametrize("behind", [RTD(), AllTokensMLM()])
def test_what_was_never_written_cannot_be_judged(behind: Objective) -> None:
    name = type(behind).__name__
    with pytest.raises(RecipeError, match=rf"Task 'detect': {name} needs tokens written by a Generator.*Add a"):
        task(MLM(), behind)


def test_what_nobody_reads_is_not_written() -> None:
    with pytest.raises(RecipeError, match=r"Task 'detect': Generator rewrites.*but it is alone"):
        task(Generator())


def test_one_alone_writes() -> None:
    with pytest.raises(RecipeError, match=r"the only rewriter.*but there are 2"):
        task(Generator(), Generator(width=0.5), RTD())


def test_a_generator_that_is_the_trunk_has_its_size() -> None:
    electra = member("electra", "small")
    with pytest.raises(RecipeError, match=r"needs width 1 and depth 1; found a generator of depth 12 and width 64"):
        override(electra, "stages.0.tasks.0.objectives.0.tie", "all")


@pytest.mark.parametrize(
    "learns", [(Generator(), RTD()), (Generator(), MLM(), NSP), (RTD(), Generator(), AllTokensMLM())]
)
def test_what_is_written_and_read_is_accepted(learns: tuple[Objective, ...]) -> None:
    assert task(*learns).objectives == learns
