"""Values for display: on one line, as a tree, and as a list of differences.

Floats are rounded to four digits; JSON (`serialize.py`) keeps them exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

NO_LIMIT = 1 << 30
"""The value of an unlimited count."""
_TOP = 2
_DIGITS = 4
_MANY = 4
"""A longer tuple is shortened to its first two items and the last."""


class Difference(NamedTuple):
    """A path at which two values differ, with both sides in short form."""

    path: str
    left: str
    right: str


def difference(left: object, right: object) -> list[Difference]:
    """All differences. Two parts of different classes are one difference."""
    return list(_differences(left, right, ""))


def to_tree(value: object) -> list[str]:
    """The value as an indented tree, one leaf a line."""
    return list(_tree_lines(value, "", ""))


def _differences(left: object, right: object, path: str) -> Iterator[Difference]:
    if left == right:
        return
    alike = type(left) is type(right) or (isinstance(left, Mapping) and isinstance(right, Mapping))
    if not (alike and (_is_nested(left) or _is_nested(right))):
        lines = _distinguishing_line(left, right), _distinguishing_line(right, left)
        yield Difference(path, *(lines if lines[0] != lines[1] else (repr(left), repr(right))))
        return
    left_items, right_items = children_of(left), children_of(right)
    for name in left_items | right_items:
        below = f"{path}.{name}".removeprefix(".")
        if name in left_items and name in right_items:
            yield from _differences(left_items[name], right_items[name], below)
        else:
            yield Difference(
                below, *(_outline(side[name]) if name in side else "nothing" for side in (left_items, right_items))
            )


def _tree_lines(value: object, label: str, indent: str) -> Iterator[str]:
    title = to_line(value) if not _is_nested(value) else type(value).__name__ if is_dataclass(value) else ""
    yield f"{indent}{label}{title}".rstrip()
    for name, item in children_of(value).items() if _is_nested(value) else ():
        yield from _tree_lines(item, f"{name}: ", f"{indent}  ")


def to_line(value: object, depth: int = _TOP) -> str:
    """A value on one line; nested parts omit fields with default values."""
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, tuple):
        return f"({', '.join(to_line(item, depth) for item in value)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{to_line(key)}: {to_line(item, depth)}' for key, item in value.items())}}}"
    if value == NO_LIMIT and isinstance(value, int):
        return "no limit"
    if isinstance(value, float) and not value.is_integer():
        return repr(float(f"{value:.{_DIGITS}g}"))
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    values = {f: getattr(value, f.name) for f in fields(value) if f.init}
    shown = [f for f, item in values.items() if item != _default(f) or (depth == _TOP and not _is_nested(item))]
    inner = ", ".join(f"{f.name}={to_line(getattr(value, f.name), depth - 1)}" for f in shown)
    return f"{type(value).__name__}({inner if depth else '...' if shown else ''})"


def _distinguishing_line(value: object, other: object) -> str:
    """A part compared with one of another class: the fields that they do not share or that are not default."""
    if not (is_dataclass(value) and is_dataclass(other)) or any(map(_is_nested, children_of(value).values())):
        return to_line(value)
    theirs, usual = children_of(other), {f.name: _default(f) for f in fields(value) if f.init}
    apart = {
        name: item
        for name, item in children_of(value).items()
        if (item != theirs[name] if name in theirs else item != NO_LIMIT)
    }
    special = {n: i for n, i in apart.items() if n in theirs or isinstance(i, Enum) or i != usual[n]}
    return _format_call(value, special or apart)


def _outline(value: object) -> str:
    """A value without a counterpart, on one line: a nested part is shown with its plain fields."""
    if not is_dataclass(value):
        return to_line(value)
    usual, inside = {f.name: _default(f) for f in fields(value) if f.init}, children_of(value)
    if not any(map(_is_nested, inside.values())):
        return _format_call(value, {n: i for n, i in inside.items() if i != usual[n] or isinstance(i, Enum)})
    return _format_call(value, {n: i for n, i in inside.items() if i != usual[n] and not _is_nested(i)}, "...")


def _format_call(value: object, values: Mapping[str, object], *more: str) -> str:
    inner = (f"{name}={_shorten(item)}" for name, item in values.items())
    return f"{type(value).__name__}({', '.join([*inner, *more])})"


def _shorten(value: object) -> str:
    if isinstance(value, tuple) and len(value) > _MANY:
        return f"({', '.join(map(to_line, value[:2]))}, ... {to_line(value[-1])})"
    return to_line(value)


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _is_nested(value: object) -> bool:
    """Whether a value needs several lines: a part with fields, a mapping, or a tuple of these."""
    return any(map(_is_nested, value)) if isinstance(value, tuple) else bool(children_of(value))


def children_of(value: object) -> dict[str, object]:
    """The items of a value by the words of a path: indices, keys or field names."""
    if isinstance(value, tuple):
        return {str(i): item for i, item in enumerate(value)}
    if isinstance(value, Mapping):
        return {key_name(key): item for key, item in value.items()}
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    return {}


def key_name(key: object) -> str:
    """The text of a mapping key."""
    return key.name if isinstance(key, Enum) else str(key)
