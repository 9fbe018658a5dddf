"""Values as a person reads them: on one line, as a tree, and as the places where two of them differ.

What arrives: trees of frozen dataclasses, tuples, mappings and leaves. What leaves: words.
What never happens here: anything that is read back. Numbers are rounded for the eye; JSON holds them exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

NO_LIMIT = 1 << 30
"""What a part writes where it takes as much as there is."""
_TOP = 2
_DIGITS = 4
_MANY = 4
"""Of a longer row of numbers a difference tells the first two and the last."""


class Difference(NamedTuple):
    """One place where two values differ, with each side in a short readable form."""

    path: str
    left: str
    right: str


def difference(left: object, right: object) -> list[Difference]:
    """Every place where two values differ. A part of another type is one difference, whatever it holds."""
    return list(_differ(left, right, ""))


def describe(value: object) -> list[str]:
    """The value as an indented tree, one leaf a line."""
    return list(_describe(value, "", ""))


def _differ(left: object, right: object, path: str) -> Iterator[Difference]:
    if left == right:
        return
    alike = type(left) is type(right) or (isinstance(left, Mapping) and isinstance(right, Mapping))
    if not (alike and (_opens(left) or _opens(right))):
        told = _apart(left, right), _apart(right, left)
        yield Difference(path, *(told if told[0] != told[1] else (repr(left), repr(right))))
        return
    ours, theirs = held_in(left), held_in(right)
    for name in ours | theirs:
        below = f"{path}.{name}".removeprefix(".")
        if name in ours and name in theirs:
            yield from _differ(ours[name], theirs[name], below)
        else:
            yield Difference(below, *(_outline(side[name]) if name in side else "nothing" for side in (ours, theirs)))


def _describe(value: object, label: str, indent: str) -> Iterator[str]:
    title = brief(value) if not _opens(value) else type(value).__name__ if is_dataclass(value) else ""
    yield f"{indent}{label}{title}".rstrip()
    for name, item in held_in(value).items() if _opens(value) else ():
        yield from _describe(item, f"{name}: ", f"{indent}  ")


def brief(value: object, depth: int = _TOP) -> str:
    """A value on one line: below the top, fields that hold their default are left out, and so is what lies deep."""
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, tuple):
        return f"({', '.join(brief(item, depth) for item in value)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{brief(key)}: {brief(item, depth)}' for key, item in value.items())}}}"
    if value == NO_LIMIT and isinstance(value, int):
        return "no limit"
    if isinstance(value, float) and not value.is_integer():
        return repr(float(f"{value:.{_DIGITS}g}"))
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    held = {f: getattr(value, f.name) for f in fields(value) if f.init}
    told = [f for f, item in held.items() if item != _default(f) or (depth == _TOP and not _opens(item))]
    inner = ", ".join(f"{f.name}={brief(getattr(value, f.name), depth - 1)}" for f in told)
    return f"{type(value).__name__}({inner if depth else '...' if told else ''})"


def _apart(value: object, other: object) -> str:
    """A part beside one of another type: by what they do not have in common, and what tells it from its usual form."""
    if not (is_dataclass(value) and is_dataclass(other)) or any(map(_opens, held_in(value).values())):
        return brief(value)
    theirs, usual = held_in(other), {f.name: _default(f) for f in fields(value) if f.init}
    apart = {
        name: item
        for name, item in held_in(value).items()
        if (item != theirs[name] if name in theirs else item != NO_LIMIT)
    }
    special = {n: i for n, i in apart.items() if n in theirs or isinstance(i, Enum) or i != usual[n]}
    return _call(value, special or apart)


def _outline(value: object) -> str:
    """A value that stands on one side only, on one line: a part that holds parts is known by its plain fields."""
    if not is_dataclass(value):
        return brief(value)
    usual, inside = {f.name: _default(f) for f in fields(value) if f.init}, held_in(value)
    if not any(map(_opens, inside.values())):
        return _call(value, {n: i for n, i in inside.items() if i != usual[n] or isinstance(i, Enum)})
    return _call(value, {n: i for n, i in inside.items() if i != usual[n] and not _opens(i)}, "...")


def _call(value: object, told: Mapping[str, object], *more: str) -> str:
    inner = (f"{name}={_short(item)}" for name, item in told.items())
    return f"{type(value).__name__}({', '.join([*inner, *more])})"


def _short(value: object) -> str:
    if isinstance(value, tuple) and len(value) > _MANY:
        return f"({', '.join(map(brief, value[:2]))}, ... {brief(value[-1])})"
    return brief(value)


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _opens(value: object) -> bool:
    """Whether a value takes several lines: a part with fields, a mapping, or a tuple that holds one of these."""
    return any(map(_opens, value)) if isinstance(value, tuple) else bool(held_in(value))


def held_in(value: object) -> dict[str, object]:
    """What a value holds, by the words that a path uses: places of a tuple, keys of a mapping, fields of a part."""
    if isinstance(value, tuple):
        return {str(i): item for i, item in enumerate(value)}
    if isinstance(value, Mapping):
        return {key_name(key): item for key, item in value.items()}
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    return {}


def key_name(key: object) -> str:
    """The word for a key of a mapping."""
    return key.name if isinstance(key, Enum) else str(key)
