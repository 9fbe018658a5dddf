"""What cannot work is refused when it is put together: who, what was needed, what was found, what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from unmask.config.attention_pattern import CAUSAL, PREFIX_LM, WITHIN_DOCUMENT, XLNET_STREAMS
from unmask.config.network import LSTMConfig, NetworkConfig
from unmask.core.errors import RecipeError
from unmask.core.records import UnitKind
from unmask.data.corrupt.factorization_order import PermutationOrder
from unmask.data.corrupt.identity import NoCorruption
from unmask.data.corrupt.masking import MaskTokens, OneOfSelectors, RandomTokens, Replace, ReplaceBy, WholeUnits
from unmask.data.corrupt.sentence_permutation import PermuteSentences
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.input_formats.packed import DocumentBoundary, Packed
from unmask.data.input_formats.pairs import Negative, SegmentPairs
from unmask.members import member
from unmask.objectives.language_model import CLM
from unmask.objectives.mlm import MLM
from unmask.objectives.sbo import SBO
from unmask.objectives.sentence_pair import NSP, SOP
from unmask.objectives.seq2seq import Seq2SeqObjective
from unmask.tasks.checks import check_memory
from unmask.tasks.presets import preset
from unmask.tasks.recipe import Recipe, Stage, Task

CLOZE = Task(name="cloze", examples=SegmentPairs(Negative.RANDOM), corruption=MaskTokens(), objectives=(MLM(), NSP))
STAGE = Stage(tasks=(CLOZE,), max_length=128, batch_size=256)
SPANS = tuple(
    Task(
        name=f"at most {most}",
        examples=Packed(),
        corruption=MaskTokens(),
        objectives=(MLM(), SBO(max_span_tokens=most)),
    )
    for most in (20, 9)
)

REFUSED: dict[str, tuple[Callable[[], object], list[str]]] = {
    "next sentence on swapped pairs": (
        lambda: replace(CLOZE, examples=SegmentPairs(Negative.SWAPPED)),
        ["Task 'cloze'", "RowFactObjective needs the fact 'next'", "Pairs states order", "Build rows that state it"],
    ),
    "sentence order on random pairs": (
        lambda: replace(CLOZE, objectives=(MLM(), SOP)),
        ["Task 'cloze'", "needs the fact 'order'", "Pairs states next"],
    ),
    "next sentence on running text": (
        lambda: replace(CLOZE, examples=Packed()),
        ["needs the fact 'next'", "Packed states no facts"],
    ),
    "span borders without a cloze": (
        lambda: Task(name="borders", examples=Packed(), corruption=PermutationOrder(), objectives=(SBO(),)),
        ["Task 'borders'", "SBO needs a Cloze", "PermutationOrder makes a PermutedTarget", "Exchange one of the two"],
    ),
    "masked language model without a cloze": (
        lambda: Task(name="filled", examples=Packed(), corruption=NoCorruption(), objectives=(MLM(),)),
        ["Task 'filled'", "MLM needs a Cloze", "NoCorruption makes a NextToken"],
    ),
    "writing out what was never asked": (
        lambda: Task(
            name="written", examples=Packed(), corruption=MaskTokens(), objectives=(MLM(), Seq2SeqObjective())
        ),
        ["Seq2SeqObjective needs a DecoderTarget", "MaskTokens makes a Cloze"],
    ),
    "a causal loss under a full view": (
        lambda: Task(name="ahead", examples=Packed(), corruption=NoCorruption(), objectives=(CLM(),)),
        ["Task 'ahead'", "CLM can see its own answer", "must not know token", "Choose a view that hides it"],
    ),
    "documents kept apart under a pattern that joins them": (
        lambda: Task(
            name="packed", examples=Packed(DocumentBoundary.BORDERS), corruption=MaskTokens(), objectives=(MLM(),)
        ),
        ["Task 'packed'", "Packed keeps the documents of a row apart", "attend to each other", "WITHIN_DOCUMENT"],
    ),
    "the same objective twice": (lambda: replace(CLOZE, objectives=(MLM(), NSP, NSP)), ["Task 'cloze'", "twice"]),
    "the same head twice": (
        lambda: replace(CLOZE, objectives=(MLM(), MLM(weight=2.0), NSP)),
        ["Task 'cloze'", "twice: 'mlm'", "Give it a weight"],
    ),
    "an objective that is unlearned": (
        lambda: replace(CLOZE, objectives=(MLM(weight=-1.0), NSP)),
        ["Task 'cloze': MLM needs a weight of at least 0", "found -1"],
    ),
    "one head with two settings": (
        lambda: replace(member("spanbert"), stages=(replace(STAGE, tasks=SPANS, task_weights=(0.5, 0.5)),)),
        ["spanbert", "two tasks learn 'sbo' with one head", "max_span_tokens=9", "Only their weights may differ"],
    ),
    "two tasks of one name in a stage": (
        lambda: replace(
            STAGE, tasks=(CLOZE, replace(CLOZE, corruption=MaskTokens(WholeUnits()))), task_weights=(0.5, 0.5)
        ),
        ["names of their own", "found cloze, cloze", "Rename one"],
    ),
    "a corruption that nobody reads": (
        lambda: Task(name="idle", examples=SegmentPairs(), corruption=MaskTokens(), objectives=(NSP,)),
        ["Task 'idle'", "MaskTokens makes a Cloze", "no objective reads it", "Add one that does"],
    ),
    "a task that learns nothing": (
        lambda: replace(CLOZE, objectives=()),
        ["MaskTokens makes a Cloze", "no objective reads it"],
    ),
    "replacement shares that do not sum to one": (
        lambda: Replace(mask=0.8, random=0.1),
        ["Replace needs shares that sum to 1", "mask 0.8", "random 0.1", "sum to 0.9"],
    ),
    "similar words token by token": (
        lambda: Replace(similar=1.0, per=ReplaceBy.TOKEN),
        ["exchanges whole words", "per=ReplaceBy.WORD"],
    ),
    "run lengths that do not sum to one": (
        lambda: WholeUnits(run_lengths=(0.5, 0.3)),
        ["run lengths of Units", "sum to 1", "(0.5, 0.3)"],
    ),
    "a mixture with a share too few": (
        lambda: OneOfSelectors((RandomTokens(), WholeUnits()), (1.0,)),
        ["OneOfSelectors", "(1.0,)"],
    ),
    "a rate above one": (lambda: RandomTokens(rate=1.5), ["rate of a selection", "between 0 and 1", "found 1.5"]),
    "task shares that do not sum to one": (
        lambda: replace(STAGE, tasks=(CLOZE, replace(CLOZE, name="again")), task_weights=(0.5, 0.4)),
        ["a share for each, summing to 1", "found 2 tasks", "(0.5, 0.4)"],
    ),
    "a share for a task that is not there": (
        lambda: replace(STAGE, task_weights=(0.5, 0.5)),
        ["found 1 tasks", "(0.5, 0.5)"],
    ),
    "a stage without tasks": (
        lambda: replace(STAGE, tasks=(), task_weights=()),
        ["one or more tasks", "found 0 tasks"],
    ),
    "rows too short for text": (lambda: replace(STAGE, max_length=4), ["at least 8 tokens", "found 4, 256 and 1.0"]),
    "a batch of nothing": (lambda: replace(STAGE, batch_size=0), ["a batch of at least 1", "found 128, 0 and 1.0"]),
    "stages that do not fill the steps": (
        lambda: replace(member("bert"), stages=(replace(STAGE, fraction=0.5),)),
        ["bert", "shares of the steps must sum to 1, found 0.5"],
    ),
    "a factorization order that nothing draws": (
        lambda: replace(CLOZE, attention=XLNET_STREAMS),
        ["'content' attends in a factorization order, but MaskTokens draws none"],
    ),
    "a prefix that no row has": (
        lambda: replace(CLOZE, attention=PREFIX_LM),
        ["'main' attends by the prefix of a row", "state none"],
    ),
    "documents that no row tells apart": (
        lambda: replace(CLOZE, examples=Packed(), objectives=(MLM(),), attention=WITHIN_DOCUMENT),
        ["'main' attends within documents, but Packed makes rows of one document"],
    ),
    "a stream that starts blank in a network without a vector for it": (
        lambda: _recipe_of(preset("xlnet"), member("bert").network),
        ["the stream 'query', which does not start from tokens", "Set network.has_blank_stream=true"],
    ),
    "a causal network without attention": (
        lambda: _recipe_of(preset("gpt"), LSTMConfig(depth=1, direction_width=8, cell_width=16)),
        ["a network of kind LSTMConfig has no attention"],
    ),
    "a memory of other documents": (
        lambda: check_memory("xl", WITHIN_DOCUMENT),
        ["a memory stands in front of a row", "by the document of a token"],
    ),
    "a recipe without stages": (lambda: replace(member("bert"), stages=()), ["bert", "must sum to 1, found no stages"]),
}


def _recipe_of(task: Task, network: NetworkConfig) -> Recipe:
    """A recipe of one task on another network."""
    return replace(member("bert"), stages=(replace(STAGE, tasks=(task,)),), network=network)


@pytest.mark.parametrize("mistake", REFUSED)
def test_what_cannot_work_is_refused_with_a_sentence(mistake: str) -> None:
    build, words = REFUSED[mistake]
    with pytest.raises(RecipeError) as caught:
        build()
    sentence = str(caught.value)
    assert [word for word in words if word not in sentence] == []
    assert sentence.endswith(".")


def test_what_can_work_is_accepted_and_says_what_it_needs() -> None:
    assert CLOZE.required_units == frozenset()
    words = replace(CLOZE, name="words", corruption=MaskTokens(WholeUnits(UnitKind.PHRASE)))
    assert words.required_units == {UnitKind.WORD, UnitKind.PHRASE}
    assert (
        Task(
            name="ahead", examples=Packed(), corruption=NoCorruption(), objectives=(CLM(),), attention=CAUSAL
        ).attention
        == CAUSAL
    )
    apart = Task(
        name="apart",
        examples=Packed(DocumentBoundary.BORDERS),
        corruption=MaskTokens(),
        objectives=(MLM(),),
        attention=WITHIN_DOCUMENT,
    )
    assert apart.attention == WITHIN_DOCUMENT
    assert (
        Task(name="t5", examples=Packed(), corruption=SpanCorruption(), objectives=(Seq2SeqObjective(),)).required_units
        == frozenset()
    )
    assert replace(STAGE, tasks=(CLOZE, words), task_weights=(0.25, 0.75)).task_weights == (0.25, 0.75)


def test_tasks_that_share_a_head_may_weigh_it_differently() -> None:
    heavy = replace(CLOZE, name="heavy", objectives=(MLM(weight=2.0), NSP))
    recipe = replace(member("bert"), stages=(replace(STAGE, tasks=(CLOZE, heavy), task_weights=(0.5, 0.5)),))
    assert [one.name for one in recipe.objectives] == ["mlm", "next"]


def test_a_recipe_lists_each_task_once_and_needs_what_any_of_them_needs() -> None:
    moved = Task(name="moved", examples=Packed(), corruption=PermuteSentences(), objectives=(Seq2SeqObjective(),))
    words = replace(CLOZE, name="words", corruption=MaskTokens(WholeUnits()))
    stages = (
        replace(STAGE, fraction=0.5),
        replace(STAGE, tasks=(CLOZE, moved, words), task_weights=(0.2, 0.3, 0.5), fraction=0.5),
    )
    recipe = replace(member("bert"), name="mine", stages=stages)
    assert recipe.tasks == (CLOZE, moved, words)
    assert recipe.required_units == {UnitKind.SENTENCE, UnitKind.WORD}


def test_whole_words_on_a_corpus_that_was_not_segmented_are_refused() -> None:
    wwm: Recipe = member("wwm")
    with pytest.raises(RecipeError) as caught:
        wwm.check_corpus(frozenset({UnitKind.SENTENCE}), "data/news")
    sentence = str(caught.value)
    assert "wwm reads sentence, word units" in sentence
    assert "data/news was prepared with sentence only" in sentence
    assert "unmask prepare CORPUS --for wwm --out NEW_FOLDER" in sentence


def test_phrases_and_entities_that_are_missing_are_asked_for_by_name() -> None:
    task = replace(
        CLOZE,
        corruption=MaskTokens(OneOfSelectors((WholeUnits(UnitKind.PHRASE), WholeUnits(UnitKind.ENTITY)), (0.5, 0.5))),
    )
    recipe = replace(member("wwm"), stages=(replace(STAGE, tasks=(task,)),))
    for have, wish in (({UnitKind.PHRASE}, "entity"), (set(), "entity,phrase")):
        with pytest.raises(RecipeError, match=f"prepare CORPUS --for wwm --units {wish} --out NEW_FOLDER"):
            recipe.check_corpus(frozenset({UnitKind.SENTENCE, UnitKind.WORD} | have), "data/news")


@pytest.mark.parametrize("extra", [frozenset(), frozenset({UnitKind.ENTITY, UnitKind.PHRASE})], ids=["exact", "more"])
def test_a_corpus_with_enough_layers_is_accepted(extra: frozenset[UnitKind]) -> None:
    member("wwm").check_corpus(frozenset({UnitKind.WORD, UnitKind.SENTENCE}) | extra, "data/news")


def test_tasks_stages_and_recipes_compare_by_value() -> None:
    assert replace(CLOZE) == CLOZE
    assert hash(replace(CLOZE)) == hash(CLOZE)
    assert replace(CLOZE, name="other") != CLOZE
    assert member("bert") == member("bert")


def test_a_recipe_knows_all_that_it_learns_each_once_by_name() -> None:
    other = replace(CLOZE, name="lighter", examples=SegmentPairs(Negative.SWAPPED), objectives=(MLM(weight=0.5), SOP))
    stages = (
        replace(STAGE, tasks=(CLOZE, other), task_weights=(0.5, 0.5), fraction=0.9),
        replace(STAGE, max_length=512, fraction=0.1),
    )
    recipe = replace(member("bert"), stages=stages)
    assert [objective.name for objective in recipe.objectives] == ["mlm", "next", "order"]
    assert recipe.tasks == (CLOZE, other)
    assert recipe.max_length == 512


def test_a_recipe_says_how_wide_a_network_is_and_how_it_descends() -> None:
    recipe = member("bert")
    assert (recipe.network.depth, recipe.network.width) == (12, 768)
    assert recipe.optim.max_grad_norm == 1.0
    for field in ("network", "optim"):
        values = {name: getattr(recipe, name) for name in Recipe.__dataclass_fields__ if name != field}
        with pytest.raises(TypeError, match=field):
            Recipe(**values)
