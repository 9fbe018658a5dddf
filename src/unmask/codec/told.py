"""Values as a person reads them: on one line, as a tree, and as the places where two of them differ.

What arrives: trees of frozen dataclasses, tuples, mappings and leaves. What leaves: words.
What never happens here: anything that is read back. Numbers are rounded for the eye; JSON holds them exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

_TOP = 2
_DIGITS = 4


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
        told = brief(left), brief(right)
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
    if isinstance(value, float) and not value.is_integer():
        return repr(float(f"{value:.{_DIGITS}g}"))
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    held = {f: getattr(value, f.name) for f in fields(value) if f.init}
    told = [f for f, item in held.items() if item != _default(f) or (depth == _TOP and not _opens(item))]
    inner = ", ".join(f"{f.name}={brief(getattr(value, f.name), depth - 1)}" for f in told)
    return f"{type(value).__name__}({inner if depth else '...' if told else ''})"


def _outline(value: object) -> str:
    """A value that stands on one side only, on one line: a part that holds parts is known by its plain fields."""
    if not is_dataclass(value) or not any(map(_opens, held_in(value).values())):
        return brief(value)
    held = {f: getattr(value, f.name) for f in fields(value) if f.init}
    told = [f"{f.name}={brief(item)}" for f, item in held.items() if not _opens(item) and item != _default(f)]
    return f"{type(value).__name__}({', '.join([*told, '...'])})"


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
