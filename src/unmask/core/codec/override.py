"""A copy of a value with some settings replaced: what `--set PATH=VALUE` does.

A path names fields, keys and places (`stages.0.max_length`); `*` is every place of a tuple or key of a mapping. A value
is read by the type of its field; a whole part is typed as a call (`parse.py`). The copy is checked like any other
value, after all changes are made, so that changes which are valid only together may come in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from types import MappingProxyType
from typing import TypeAlias, TypeVar, cast, get_args, get_origin

from unmask.core.codec.parse import parse_parts
from unmask.core.codec.pretty import children_of, key_name, to_line
from unmask.core.codec.serialize import (
    build_config,
    field_types,
    is_config_type,
    read_leaf,
    read_text_leaf,
    tuple_types,
    union_member,
)
from unmask.core.errors import RecipeError

T = TypeVar("T")
Change: TypeAlias = tuple[list[str], str]
"""The words of a path, and the typed value."""
_WILDCARD = "*"


def override(value: T, path: str, text: str) -> T:
    """A copy in which `path` ("stages.0.max_length") has the typed value."""
    return override_many(value, [(path, text)])


def override_many(value: T, changes: Sequence[tuple[str, str]]) -> T:
    """A copy with several settings replaced at once."""
    split = [(path.split("."), text) for path, text in changes]
    return cast(T, _override(value, type(value), split, type(value).__name__)) if split else value


def _override(value: object, declared: object, changes: Sequence[Change], where: str) -> object:
    whole = [text for path, text in changes if not path]
    if whole:
        return _parse_typed(whole[-1], value, union_member(declared, False, where), where)
    inside = children_of(value)
    changes = _expand_wildcards(changes, value, inside)
    for step in (path[0] for path, _ in changes if path[0] not in inside):
        there = f"it has {', '.join(inside)}" if inside else f"it is {to_line(value)}, which has no fields"
        raise RecipeError(f"{where} has no {step!r}; {there}")
    kinds = field_types(value, union_member(declared, is_dataclass(value), where), where)
    changed = dict(inside)
    for step in dict.fromkeys(path[0] for path, _ in changes):
        below = [(path[1:], text) for path, text in changes if path[0] == step]
        changed[step] = _override(inside[step], kinds[step], below, f"{where}.{step}")
    if isinstance(value, tuple):
        return tuple(changed.values())
    if isinstance(value, Mapping):
        return MappingProxyType({key: changed[key_name(key)] for key in value})
    return build_config(type(value), changed, where)


def _expand_wildcards(changes: Sequence[Change], value: object, inside: Mapping[str, object]) -> list[Change]:
    """The changes, with one for each place that `*` stands for."""
    if is_dataclass(value):
        return list(changes)
    spread: list[Change] = []
    for (first, *rest), text in changes:
        spread += [([name, *rest], text) for name in (inside if first == _WILDCARD else (first,))]
    return spread


def _parse_typed(text: str, old: object, kind: object, where: str) -> object:
    """The value of a typed text: a leaf, leaves with commas, or a part."""
    if get_origin(kind) is Mapping:
        names = ", ".join(children_of(old)) or "nothing"
        raise RecipeError(f"{where} is {to_line(old)} and cannot be typed in one word; set one of its keys: {names}")
    several = get_origin(kind) is tuple
    if is_config_type(kind) or (several and any(map(is_config_type, get_args(kind)[:1]))):
        return parse_parts(text, kind, old, where)
    if not several:
        return read_leaf(read_text_leaf, text, kind, where)
    words = [word.strip() for word in text.strip().strip("()").split(",") if word.strip()]
    slots = (union_member(slot, False, where) for slot in tuple_types(kind, len(words), where))
    return tuple(read_leaf(read_text_leaf, word, slot, where) for word, slot in zip(words, slots, strict=True))
