"""Parts from typed text: `StaticMasking(1)`, or several: `MLM(), RowFactObjective(fact=order)`.

The text looks like a call but is only parsed. A name is that of a part of `unmask`, or of a class in the file of the
part that it replaces (a user's own recipe). Fields are read by their types, in order or by name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from typing import get_origin

from unmask.core.codec.part_names import class_of_name
from unmask.core.codec.pretty import children_of
from unmask.core.codec.serialize import (
    build_config,
    config_field_types,
    is_config_type,
    read_leaf,
    read_text_leaf,
    required_fields,
    tuple_types,
    union_member,
)
from unmask.core.errors import RecipeError


def parse_parts(text: str, kind: object, old: object, where: str) -> object:
    """A part, or a tuple of parts, that replaces an old one."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise _unknown_part_error(text[:60], old, where) from None
    return _parse_value(node, kind, old[0] if isinstance(old, tuple) and old else old, where)


def _parse_value(node: ast.expr, declared: object, old: object, where: str) -> object:
    kind = union_member(declared, isinstance(node, ast.Call), where)
    if get_origin(kind) is tuple:
        items = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        slots = tuple_types(kind, len(items), where)
        return tuple(_parse_value(item, slots[i], old, f"{where}.{i}") for i, item in enumerate(items))
    if is_config_type(kind):
        return _parse_part(node, kind, old, where)
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    return read_leaf(read_text_leaf, text, kind, where)


def _parse_part(node: ast.expr, kind: object, old: object, where: str) -> object:
    call = node if isinstance(node, ast.Call) else ast.Call(func=node, args=[], keywords=[])
    name = ast.unparse(call.func)
    module = sys.modules.get((old if isinstance(old, type) else type(old)).__module__)
    cls = getattr(module, name, None) or class_of_name(name)
    if not isinstance(cls, type):
        raise _unknown_part_error(name[:60], old, where)
    kinds = config_field_types(cls, kind, where)
    given = _bind_arguments(call, kinds, f"{where}: {name}")
    values = {field: _parse_value(value, kinds[field], cls, f"{where}.{field}") for field, value in given.items()}
    missing = [field for field in required_fields(cls) if field not in values]
    if missing:
        raise RecipeError(f"{where}: {name} also needs {' and '.join(missing)}; its fields are {', '.join(kinds)}")
    return build_config(cls, values, where)


def _bind_arguments(call: ast.Call, kinds: Mapping[str, object], part: str) -> dict[str, ast.expr]:
    """The typed expression of each field, given in order or by name."""
    has = f"it has {', '.join(kinds)}" if kinds else "it has none"
    if len(call.args) > len(kinds):
        raise RecipeError(f"{part} was given {len(call.args)} values, more than it has fields; {has}")
    given = dict(zip(kinds, call.args, strict=False))
    for word in call.keywords:
        if word.arg is None or word.arg not in kinds or word.arg in given:
            raise RecipeError(f"{part} has no field {word.arg!r}, or was given it twice; {has}")
        given[word.arg] = word.value
    return given


def _unknown_part_error(typed: str, old: object, where: str) -> RecipeError:
    names = ", ".join(children_of(old))
    return RecipeError(
        f"{where}: there is no part {typed!r} that fits here. Write one as Name(field=value), for example "
        "Packed(join=never)" + (f"; or set one of its fields: {names}" if names else "")
    )
