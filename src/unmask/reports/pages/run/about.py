"""The identity of a run: member, size, budget, corpus, progress, and its recipe if it can be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unmask.core.codec import TAG, Difference, decode, difference, fingerprint
from unmask.core.errors import RecipeError, UserError
from unmask.members import member, sizes
from unmask.reports.read_log import Json
from unmask.reports.read_run import RunRecord
from unmask.reports.text.number_format import format_count, format_percent
from unmask.tasks.recipe import Recipe

_KINDS = {"pretrain": ("pre-training", "预训练"), "tune": ("fine-tuning", "微调")}
_OTHERS = {
    "source": "network from",
    "from": "begun with",
    "output": "asked",
    "policy": "what moves",
    "fields": "fields",
    "files": "files",
    "settings": "settings",
}
"""Further entries of `run.json` with their names on the page."""


@dataclass(frozen=True, slots=True)
class MissingPart:
    """Something that cannot be shown, with the reason."""

    reason: str


def recipe_of(record: RunRecord) -> Recipe | MissingPart:
    """The stored recipe of a run."""
    stored = record.metadata.get("recipe")
    if not stored:
        return MissingPart("The run's folder holds no recipe.")
    try:
        return decode(stored, Recipe)
    except UserError as error:
        return MissingPart(f"The stored recipe cannot be read with the parts of this version: {error}.")


def size_of(recipe: Recipe) -> str:
    """The name of a recipe's size; empty if it is none of the published ones."""
    shape = recipe.network.size
    try:
        known = sizes(recipe.name)
    except ImportError:
        return ""
    return next((name for name, s in known.items() if s == shape), "")


def changes_of(recipe: Recipe) -> tuple[Difference, ...] | MissingPart:
    """The differences to the published member of the same name and size: path, published value, own value."""
    try:
        published = member(recipe.name, size_of(recipe))
    except RecipeError:
        return MissingPart(f"{recipe.name} is a custom recipe; there is no published member to compare it with.")
    if fingerprint(published) == fingerprint(recipe):
        return ()
    return tuple(difference(published, recipe))


def kind_of(record: RunRecord) -> tuple[str, str]:
    """The kind of the run in English and in Chinese."""
    kind = str(record.metadata.get("kind", ""))
    return _KINDS.get(kind, (kind, ""))


def title_of(record: RunRecord) -> str:
    """The member and its size; without a recipe, the name of the base model or of the folder."""
    recipe = recipe_of(record)
    if isinstance(recipe, MissingPart):
        source = record.metadata.get("source")
        return str(source["name"] if isinstance(source, dict) and "name" in source else record.folder.resolve().name)
    return f"{recipe.name} {size_of(recipe)}".strip()


def about_of(record: RunRecord) -> str:
    """A run in one line: parameters, corpus and budget."""
    head, corpus = record.metadata, record.metadata.get("corpus")
    facts = [f"{format_count(head['parameters'])} parameters"] if head.get("parameters") else []
    facts += [_corpus(corpus)] if isinstance(corpus, dict) else []
    facts += [f"a budget of {budget_of(record)}"] if head.get("budget") else []
    return " · ".join(facts)


def facts_of(record: RunRecord) -> Iterator[tuple[str, str]]:
    """The settings of a run, as names and values."""
    head = record.metadata
    if head.get("parameters"):
        yield "network", _network(record)
    if head.get("vocabulary"):
        yield "vocabulary", f"{head['vocabulary']:,} tokens"
    corpus = head.get("corpus")
    if isinstance(corpus, dict):
        yield "corpus", _corpus(corpus)
    for name, words in _OTHERS.items():
        if head.get(name):
            yield words, _words(head[name])
    if head.get("budget"):
        yield "budget", budget_of(record)
    if "seed" in head:
        yield "seed", str(head["seed"])
    yield "folder", str(record.folder)


def _words(value: object) -> str:
    """JSON data as text."""
    if isinstance(value, dict) and TAG in value:
        inside = _words({name: item for name, item in value.items() if name != TAG})
        return str(value[TAG]).rpartition(":")[2] + (f" ({inside})" if inside else "")
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(item)}" for name, item in value.items())
    return ", ".join(map(_words, value)) if isinstance(value, list) else str(value)


def _corpus(corpus: Json) -> str:
    counts = [f"{format_count(corpus[name])} {name}" for name in ("documents", "tokens") if name in corpus]
    return ", ".join([str(corpus.get("folder", "")), *counts])


def _network(record: RunRecord) -> str:
    parameters = f"{record.metadata['parameters']:,} parameters"
    recipe = recipe_of(record)
    if isinstance(recipe, MissingPart):
        return parameters
    return f"{parameters}: {recipe.network.depth} layers, {recipe.network.width} wide"


def budget_of(record: RunRecord) -> str:
    """The budget as text."""
    budget = record.metadata["budget"]
    if not isinstance(budget, dict):
        return str(budget)
    return ", ".join(f"{value:,g} {name}" if name == "hours" else f"{value:,} {name}" for name, value in budget.items())


def state_of(record: RunRecord) -> str:
    """The progress of a run as text."""
    steps = f"{record.num_steps:,} step{'' if record.num_steps == 1 else 's'}"
    if record.is_finished:
        return f"finished after {steps}"
    share = f", {format_percent(record.last_value('progress'))} of the budget" if "progress" in record.training else ""
    return f"stopped at step {record.num_steps:,}{share}"
