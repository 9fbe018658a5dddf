"""Recipes as values, and what they do: recipe, list_recipes, diff, walk, audit, task_batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.members import members, resolve_member
from unmask.tasks.recipe import Recipe

if TYPE_CHECKING:
    from unmask.audits.finding import Findings
    from unmask.core.codec import Difference
    from unmask.core.records import InputsAndTargets, Ints
    from unmask.data.corpus.corpus import Corpus
    from unmask.tasks.batches import TaskBatches
    from unmask.walks.walk import Walk

_ALL_ROWS = 1 << 62


def list_recipes() -> list[str]:
    """The names of all members, the first published one first."""
    return [recipe.name for recipe in members()]


def recipe(name: str, *, size: str = "", set: Mapping[str, object] | None = None) -> Recipe:
    """The recipe of a member or of `your_file.py:name`, in a size, with values changed by path."""
    return resolve_member(name, [f"{path}={value}" for path, value in (set or {}).items()], size)


def diff(one: str | Recipe, other: str | Recipe) -> list[Difference]:
    """The values in which recipe `one` differs from `other`: path, value of `other`, value of `one`."""
    from unmask.core.codec import difference

    return list(difference(_resolve(other), _resolve(one)))


def walk(name: str | Recipe, text: str, *, other: str = "", task: str = "", seed: int = 0) -> Walk:
    """Every stage of the input pipeline for one text: words, tokens, selection, corrupted input, targets.

    `other` is the text of a second document, for members that read pairs of segments.
    """
    from unmask.walks.context import WalkContext, annotate, as_dialogue
    from unmask.walks.toy_vocab import other_toy_dialogue, other_toy_document
    from unmask.walks.walk import WalkTarget
    from unmask.walks.walk import walk as take_walk

    target = WalkTarget.of_member(_resolve(name), task)
    is_dialogue = target.is_dialogue
    second = other or (other_toy_dialogue(text) if is_dialogue else other_toy_document(text))
    context = WalkContext.toy([text, second], target.spelling)
    units = frozenset(target.task.required_units)
    documents = [as_dialogue(one, "text") if is_dialogue else one for one in (text, second)]
    first = annotate(documents[0], units, corpus_units=context.corpus_units)
    last = annotate(documents[1], frozenset(), corpus_units=context.corpus_units)
    return take_walk(target, first, context, last, seed, range(4), False)


def audit(name: str | Recipe, corpus: Corpus | Path | str, *, rows: int = 2000, seed: int = 0) -> Findings:
    """Measure the rules of a recipe on a corpus and compare them with what the recipe states; `rows` 0: all rows."""
    from unmask.audits.audit import audit as measure
    from unmask.core.rng import Key

    return measure(_resolve(name), _open(corpus), Key.of(seed), rows or _ALL_ROWS, ())


@dataclass(frozen=True, slots=True)
class StepBatches:
    """The batches of one task by the number of the step; any step is computed without the steps before it."""

    batches: TaskBatches
    batch_size: int

    def __getitem__(self, step: int) -> InputsAndTargets:
        """The corrupted inputs and the targets of a step."""
        return self.batches(step, self.batch_size)

    def padded(self, step: int, ignore_index: int = -100) -> dict[str, Ints]:
        """A step as padded arrays: input_ids, token_type_ids, attention_mask, labels."""
        from unmask.tasks.batches import to_padded

        return to_padded(self[step], self.batches.corpus.vocab.pad, ignore_index)


def task_batches(
    name: str | Recipe,
    corpus: Corpus | Path | str,
    *,
    batch_size: int | None = None,
    stage: int = 0,
    task: int = 0,
    seed: int = 0,
) -> StepBatches:
    """The batches of one task of a stage, for a training loop of one's own: `task_batches("wwm", corpus)[1000]`."""
    from unmask.tasks.batches import TaskBatches

    found = _resolve(name)
    return StepBatches(
        TaskBatches.of(found, _open(corpus), seed, stage, task), batch_size or found.stages[stage].batch_size
    )


def _resolve(name: str | Recipe) -> Recipe:
    return name if isinstance(name, Recipe) else resolve_member(name)


def _open(corpus: Corpus | Path | str) -> Corpus:
    from unmask.data.corpus.corpus import Corpus

    return corpus if isinstance(corpus, Corpus) else Corpus.open(Path(corpus))
