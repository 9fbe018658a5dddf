"""What cannot work is refused when it is put together: who, what was needed, what was found, what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.nothing import Nothing
from unmask.corrupt.order import Order
from unmask.corrupt.permute import PermuteSentences
from unmask.corrupt.replace import Per, Replace
from unmask.corrupt.select import OneOf, Tokens, Units
from unmask.corrupt.sentinels import Sentinels
from unmask.errors import RecipeError
from unmask.examples.packed import Join, Packed
from unmask.examples.pairs import Negative, Pairs
from unmask.family import member
from unmask.objectives.language import CLM, WriteOut
from unmask.objectives.mlm import MLM
from unmask.objectives.pair import NSP, SOP
from unmask.objectives.sbo import SBO
from unmask.records import Layer
from unmask.tasks import Recipe, Stage, Task
from unmask.views import CAUSAL, DOCUMENTS

CLOZE = Task(name="cloze", examples=Pairs(Negative.RANDOM), corrupt=MaskOut(), learns=(MLM(), NSP))
STAGE = Stage(tasks=(CLOZE,), length=128, batch=256)
SPANS = tuple(
    Task(name=f"at most {most}", examples=Packed(), corrupt=MaskOut(), learns=(MLM(), SBO(most=most)))
    for most in (20, 9)
)

REFUSED: dict[str, tuple[Callable[[], object], list[str]]] = {
    "next sentence on swapped pairs": (
        lambda: replace(CLOZE, examples=Pairs(Negative.SWAPPED)),
        ["Task 'cloze'", "SayTruth needs the fact 'next'", "Pairs states order", "Build rows that state it"],
    ),
    "sentence order on random pairs": (
        lambda: replace(CLOZE, learns=(MLM(), SOP)),
        ["Task 'cloze'", "needs the fact 'order'", "Pairs states next"],
    ),
    "next sentence on running text": (
        lambda: replace(CLOZE, examples=Packed()),
        ["needs the fact 'next'", "Packed states no facts"],
    ),
    "span borders without a cloze": (
        lambda: Task(name="borders", examples=Packed(), corrupt=Order(), learns=(SBO(),)),
        ["Task 'borders'", "SBO needs a Cloze", "Order makes a Ordering", "Exchange one of the two"],
    ),
    "masked language model without a cloze": (
        lambda: Task(name="filled", examples=Packed(), corrupt=Nothing(), learns=(MLM(),)),
        ["Task 'filled'", "MLM needs a Cloze", "Nothing makes a NextToken"],
    ),
    "writing out what was never asked": (
        lambda: Task(name="written", examples=Packed(), corrupt=MaskOut(), learns=(MLM(), WriteOut())),
        ["WriteOut needs a Rewrite", "MaskOut makes a Cloze"],
    ),
    "a causal loss under a full view": (
        lambda: Task(name="ahead", examples=Packed(), corrupt=Nothing(), learns=(CLM(),)),
        ["Task 'ahead'", "CLM can see its own answer", "must not know token", "Choose a view that hides it"],
    ),
    "documents kept apart under a view that joins them": (
        lambda: Task(name="packed", examples=Packed(Join.BORDERS), corrupt=MaskOut(), learns=(MLM(),)),
        ["Task 'packed'", "Packed keeps the documents of a row apart", "see each other", "DOCUMENTS"],
    ),
    "the same objective twice": (lambda: replace(CLOZE, learns=(MLM(), NSP, NSP)), ["Task 'cloze'", "twice"]),
    "the same head twice": (
        lambda: replace(CLOZE, learns=(MLM(), MLM(weight=2.0), NSP)),
        ["Task 'cloze'", "twice: 'mlm'", "Give it a weight"],
    ),
    "an objective that is unlearned": (
        lambda: replace(CLOZE, learns=(MLM(weight=-1.0), NSP)),
        ["Task 'cloze': MLM needs a weight of at least 0", "found -1"],
    ),
    "one head with two settings": (
        lambda: replace(member("spanbert"), stages=(replace(STAGE, tasks=SPANS, shares=(0.5, 0.5)),)),
        ["spanbert", "two tasks learn 'sbo' with one head", "most=9", "Only their weights may differ"],
    ),
    "two tasks of one name in a stage": (
        lambda: replace(STAGE, tasks=(CLOZE, replace(CLOZE, corrupt=MaskOut(Units()))), shares=(0.5, 0.5)),
        ["names of their own", "found cloze, cloze", "Rename one"],
    ),
    "a corruption that nobody reads": (
        lambda: Task(name="idle", examples=Pairs(), corrupt=MaskOut(), learns=(NSP,)),
        ["Task 'idle'", "MaskOut asks for a Cloze", "no objective reads it", "Add one that does"],
    ),
    "a task that learns nothing": (
        lambda: replace(CLOZE, learns=()),
        ["MaskOut asks for a Cloze", "no objective reads it"],
    ),
    "replacement shares that do not sum to one": (
        lambda: Replace(mask=0.8, random=0.1),
        ["Replace needs shares that sum to 1", "mask 0.8", "random 0.1", "sum to 0.9"],
    ),
    "similar words token by token": (
        lambda: Replace(similar=1.0, per=Per.TOKEN),
        ["exchanges whole words", "per=Per.WORD"],
    ),
    "run lengths that do not sum to one": (
        lambda: Units(run=(0.5, 0.3)),
        ["run lengths of Units", "sum to 1", "(0.5, 0.3)"],
    ),
    "a mixture with a share too few": (
        lambda: OneOf((Tokens(), Units()), (1.0,)),
        ["OneOf needs a share for each selection", "(1.0,)"],
    ),
    "a rate above one": (lambda: Tokens(rate=1.5), ["rate of a selection", "between 0 and 1", "found 1.5"]),
    "task shares that do not sum to one": (
        lambda: replace(STAGE, tasks=(CLOZE, replace(CLOZE, name="again")), shares=(0.5, 0.4)),
        ["a share for each, summing to 1", "found 2 tasks", "(0.5, 0.4)"],
    ),
    "a share for a task that is not there": (
        lambda: replace(STAGE, shares=(0.5, 0.5)),
        ["found 1 tasks", "(0.5, 0.5)"],
    ),
    "a stage without tasks": (lambda: replace(STAGE, tasks=(), shares=()), ["one or more tasks", "found 0 tasks"]),
    "rows too short for text": (lambda: replace(STAGE, length=4), ["at least 8 tokens", "found 4, 256 and 1.0"]),
    "a batch of nothing": (lambda: replace(STAGE, batch=0), ["a batch of at least 1", "found 128, 0 and 1.0"]),
    "stages that do not fill the steps": (
        lambda: replace(member("bert"), stages=(replace(STAGE, share=0.5),)),
        ["bert", "shares of the steps must sum to 1, found 0.5"],
    ),
    "a recipe without stages": (lambda: replace(member("bert"), stages=()), ["bert", "must sum to 1, found no stages"]),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_what_cannot_work_is_refused_with_a_sentence(mistake: str) -> None:
    build, words = REFUSED[mistake]
    with pytest.raises(RecipeError) as caught:
        build()
    sentence = str(caught.value)
    assert [word for word in words if word not in sentence] == []
    assert sentence.endswith(".")


def test_what_can_work_is_accepted_and_says_what_it_needs() -> None:
    assert CLOZE.needs == frozenset()
    words = replace(CLOZE, name="words", corrupt=MaskOut(Units(Layer.PHRASE)))
    assert words.needs == {Layer.WORD, Layer.PHRASE}
    assert Task(name="ahead", examples=Packed(), corrupt=Nothing(), learns=(CLM(),), view=CAUSAL).view == CAUSAL
    apart = Task(name="apart", examples=Packed(Join.BORDERS), corrupt=MaskOut(), learns=(MLM(),), view=DOCUMENTS)
    assert apart.view == DOCUMENTS
    assert Task(name="t5", examples=Packed(), corrupt=Sentinels(), learns=(WriteOut(),)).needs == frozenset()
    assert replace(STAGE, tasks=(CLOZE, words), shares=(0.25, 0.75)).shares == (0.25, 0.75)


def test_tasks_that_share_a_head_may_weigh_it_differently() -> None:
    heavy = replace(CLOZE, name="heavy", learns=(MLM(weight=2.0), NSP))
    recipe = replace(member("bert"), stages=(replace(STAGE, tasks=(CLOZE, heavy), shares=(0.5, 0.5)),))
    assert [one.name for one in recipe.objectives] == ["mlm", "next"]


def test_a_recipe_lists_each_task_once_and_needs_what_any_of_them_needs() -> None:
    moved = Task(name="moved", examples=Packed(), corrupt=PermuteSentences(), learns=(WriteOut(),))
    words = replace(CLOZE, name="words", corrupt=MaskOut(Units()))
    stages = (replace(STAGE, share=0.5), replace(STAGE, tasks=(CLOZE, moved, words), shares=(0.2, 0.3, 0.5), share=0.5))
    recipe = replace(member("bert"), name="mine", stages=stages)
    assert recipe.tasks == (CLOZE, moved, words)
    assert recipe.needs == {Layer.SENTENCE, Layer.WORD}


def test_whole_words_on_a_corpus_that_was_not_segmented_are_refused() -> None:
    wwm: Recipe = member("wwm")
    with pytest.raises(RecipeError) as caught:
        wwm.check(frozenset({Layer.SENTENCE}), "data/news")
    sentence = str(caught.value)
    assert "wwm reads sentence, word units" in sentence
    assert "data/news was prepared with sentence only" in sentence
    assert "unmask prepare CORPUS --for wwm --out NEW_FOLDER" in sentence


def test_phrases_and_entities_that_are_missing_are_asked_for_by_name() -> None:
    task = replace(CLOZE, corrupt=MaskOut(OneOf((Units(Layer.PHRASE), Units(Layer.ENTITY)), (0.5, 0.5))))
    recipe = replace(member("wwm"), stages=(replace(STAGE, tasks=(task,)),))
    for have, wish in (({Layer.PHRASE}, "entity"), (set(), "entity,phrase")):
        with pytest.raises(RecipeError, match=f"prepare CORPUS --for wwm --layers {wish} --out NEW_FOLDER"):
            recipe.check(frozenset({Layer.SENTENCE, Layer.WORD} | have), "data/news")


@pytest.mark.parametrize("extra", [frozenset(), frozenset({Layer.ENTITY, Layer.PHRASE})], ids=["exact", "more"])
def test_a_corpus_with_enough_layers_is_accepted(extra: frozenset[Layer]) -> None:
    member("wwm").check(frozenset({Layer.WORD, Layer.SENTENCE}) | extra, "data/news")


def test_tasks_stages_and_recipes_compare_by_value() -> None:
    assert replace(CLOZE) == CLOZE
    assert hash(replace(CLOZE)) == hash(CLOZE)
    assert replace(CLOZE, name="other") != CLOZE
    assert member("bert") == member("bert")


def test_a_recipe_knows_all_that_it_learns_each_once_by_name() -> None:
    other = replace(CLOZE, name="lighter", examples=Pairs(Negative.SWAPPED), learns=(MLM(weight=0.5), SOP))
    stages = (replace(STAGE, tasks=(CLOZE, other), shares=(0.5, 0.5), share=0.9), replace(STAGE, length=512, share=0.1))
    recipe = replace(member("bert"), stages=stages)
    assert [objective.name for objective in recipe.objectives] == ["mlm", "next", "order"]
    assert recipe.tasks == (CLOZE, other)
    assert recipe.length == 512


def test_a_recipe_says_how_wide_a_network_is_and_how_it_descends() -> None:
    recipe = member("bert")
    assert (recipe.trunk.depth, recipe.trunk.width) == (12, 768)
    assert recipe.descent.clip == 1.0
    for field in ("trunk", "descent"):
        values = {name: getattr(recipe, name) for name in Recipe.__dataclass_fields__ if name != field}
        with pytest.raises(TypeError, match=field):
            Recipe(**values)
