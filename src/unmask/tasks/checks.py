"""Checks of tasks: each refuses one combination of parts that cannot work, and names what to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, is_dataclass

from unmask.config.attention_pattern import (
    AttentionPattern,
    RowCoordinates,
    find_leaks,
)
from unmask.core.errors import RecipeError
from unmask.core.records import PermutedTarget, RowClass
from unmask.data.corrupt.protocol import Corruption
from unmask.data.input_formats.row_plan import InputFormat
from unmask.objectives.protocol import Objective

_SAMPLE = RowCoordinates.of(8, prefix=2, rank=[-1, -1, 0, -1, 2, -1, 1, -1])
_TWO_DOCUMENTS = RowCoordinates.of(8, document=[0, 0, 0, 0, 1, 1, 1, 1])


def check_targets_exist(task: str, objective: Objective, examples: InputFormat, corruption: Corruption) -> None:
    """An objective needs its kind of target and its facts."""
    if objective.target_type is not RowClass and objective.target_type not in corruption.target_types:
        made = " and ".join(kind.__name__ for kind in corruption.target_types)
        raise RecipeError(
            f"Task '{task}': {_name(objective)} needs a {objective.target_type.__name__}, but {_name(corruption)} "
            f"makes a {made}. Exchange one of the two."
        )
    missing = objective.facts - examples.row_facts
    if missing:
        given = ", ".join(sorted(examples.row_facts)) or "no facts"
        raise RecipeError(
            f"Task '{task}': {_name(objective)} needs the fact '{min(missing)}', but {_name(examples)} states {given}. "
            "Build rows that state it, or learn something else."
        )


def check_no_leak(task: str, objective: Objective, attention: AttentionPattern) -> None:
    """No objective attends to its own answer."""
    question = objective.prediction_sites(_SAMPLE)
    found = find_leaks(attention, _SAMPLE, question.sites, question.hidden)
    if found:
        raise RecipeError(
            f"Task '{task}': under this attention pattern {_name(objective)} can see its own answer: "
            f"{found[0].explain()}. Choose a view that hides it."
        )


def check_document_isolation(task: str, examples: InputFormat, attention: AttentionPattern) -> None:
    """No position reads another document where the rows keep documents apart."""
    across = any(stream.rule.matrix(_TWO_DOCUMENTS)[:4, 4:].any() for stream in attention.streams)
    if examples.isolate_documents and across:
        raise RecipeError(
            f"Task '{task}': {_name(examples)} keeps the documents of a row apart, but under this attention pattern "
            "they attend to each other. Take WITHIN_DOCUMENT, or rows that may run across documents."
        )


def check_coordinates(task: str, examples: InputFormat, corruption: Corruption, attention: AttentionPattern) -> None:
    """Whatever a pattern reads of rows is stated by the task."""
    for stream in attention.streams:
        read = stream.rule.coordinates_read()
        if "rank" in read and PermutedTarget not in corruption.target_types:
            raise RecipeError(
                f"Task '{task}': stream '{stream.name}' attends in a factorization order, but {_name(corruption)} "
                "draws none. Take PermutationOrder, or a pattern that reads no order."
            )
        if "prefix" in read:
            raise RecipeError(
                f"Task '{task}': stream '{stream.name}' attends by the prefix of a row, but {_name(examples)} and "
                f"{_name(corruption)} state none, so that every position would be visible. Take another pattern."
            )
        if "document" in read and not examples.isolate_documents:
            raise RecipeError(
                f"Task '{task}': stream '{stream.name}' attends within documents, but {_name(examples)} makes rows of "
                "one document. Take rows that keep documents apart, or a pattern that does not read them."
            )


def check_rewriter_attention(task: str, objectives: Sequence[Objective], attention: AttentionPattern) -> None:
    """A network that rewrites inputs has one stream."""
    for one in objectives:
        if one.rewrites_inputs and not attention.is_single:
            raise RecipeError(
                f"Task '{task}': {_name(one)} has a network with one stream of states, but the pattern has "
                f"{len(attention.streams)}. Take a pattern of one stream."
            )


def check_memory(name: str, attention: AttentionPattern) -> None:
    """States of earlier rows can be a memory in front of a row: no document and no prefix cuts them off."""
    for stream in attention.streams:
        cut = stream.rule.coordinates_read() & {"document", "prefix"}
        if cut:
            raise RecipeError(
                f"{name}: a memory stands in front of a row, but stream '{stream.name}' attends by the {min(cut)} of a "
                "token, which a memory does not have. Take a pattern that reads neither, or no memory."
            )


def check_generator(task: str, objectives: Sequence[Objective]) -> None:
    """An objective on generated tokens needs a generator; generated tokens must be read by some objective."""
    ahead = [one for one in objectives if one.rewrites_inputs]
    for one in objectives:
        if one.requires is not None and not any(isinstance(other, one.requires) for other in ahead):
            raise RecipeError(
                f"Task '{task}': {_name(one)} needs tokens written by a {one.requires.__name__}, but the task has "
                f"none. Add a {one.requires.__name__}."
            )
    if len(ahead) > 1 or len(ahead) == len(objectives) > 0:
        found = "it is alone" if len(objectives) == 1 else f"there are {len(ahead)}"
        raise RecipeError(
            f"Task '{task}': {_name(ahead[0])} rewrites the inputs of the network; it must be the only "
            f"rewriter and not the only objective, but {found}. Add, for example, RTD or MLM."
        )


def check_weights(task: str, objectives: Sequence[Objective]) -> None:
    """Every objective is learned once, and none is unlearned."""
    name, times = Counter(one.name for one in objectives).most_common(1)[0] if objectives else ("", 0)
    if times > 1:
        raise RecipeError(f"Task '{task}' learns the same objective twice: '{name}'. Give it a weight instead.")
    for one in objectives:
        if one.weight < 0:
            raise RecipeError(
                f"Task '{task}': {_name(one)} needs a weight of at least 0, found {one.weight:g}. A loss is never made "
                "larger on purpose."
            )


def check_targets_used(task: str, objectives: Sequence[Objective], corruption: Corruption) -> None:
    """Every target of a corruption is read by an objective."""
    for made in corruption.target_types:
        if not any(objective.target_type is made for objective in objectives):
            raise RecipeError(
                f"Task '{task}': {_name(corruption)} makes a {made.__name__}, but no objective reads it. Add one "
                "that does, or take another corruption."
            )


def check_shared_heads(recipe: str, objectives: Sequence[Objective]) -> None:
    """Objectives of one name share a head, so they may differ in nothing but their weight."""
    heads: dict[str, Objective] = {}
    for one in objectives:
        other = heads.setdefault(one.name, one)
        if _without_weight(one) != _without_weight(other):
            raise RecipeError(
                f"{recipe}: two tasks learn '{one.name}' with one head, but one has {other} and the other {one}. Only "
                "their weights may differ; set the rest alike."
            )


def _without_weight(objective: Objective) -> tuple[object, ...]:
    """All that is set on an objective except its weight."""
    assert is_dataclass(objective), "an objective is its own configuration"
    return type(objective), *(getattr(objective, one.name) for one in fields(objective) if one.name != "weight")


def _name(part: object) -> str:
    return type(part).__name__
