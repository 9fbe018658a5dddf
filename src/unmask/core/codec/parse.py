"""Parts as a person types them: `Copies(1)`, `Pairs(negative=swapped)`, or several: `MLM(), SayTruth(truth=order)`.

What arrives: a text, and what may stand in its place. What leaves: the part, checked like any other.
What never happens here: running what was typed. It looks like a call, but it is only read: the name must be that of a
part that may stand there, and its fields are read by their own types.

A short name is looked for beside the part that stands there now: in its file, then in its folder. Any other part is
named in full, as it would be imported: `unmask.data.input_formats.packed.Packed`.
"""

from __future__ import annotations

import ast
import pkgutil
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import get_origin

from unmask.core.codec.pretty import children_of
from unmask.core.codec.serialize import (
    TEXT_CONVERTER,
    build_config,
    config_field_types,
    convert_leaf,
    is_config_type,
    tuple_types,
    union_member,
    union_members,
)
from unmask.core.errors import RecipeError


def parse_parts(text: str, kind: object, old: object, where: str) -> object:
    """A part, or a tuple of parts, in the place of an old one."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise _unknown_part_error(text[:60], old, where) from None
    return _parse_value(node, kind, old[0] if isinstance(old, tuple) and old else old, where)


def _parse_value(node: ast.expr, declared: object, near: object, where: str) -> object:
    kind = union_member(declared, isinstance(node, ast.Call), where)
    if get_origin(kind) is tuple:
        items = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        slots = tuple_types(kind, len(items), where)
        return tuple(_parse_value(item, slots[i], near, f"{where}.{i}") for i, item in enumerate(items))
    if is_config_type(kind):
        return _parse_part(node, kind, near, where)
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    return convert_leaf(TEXT_CONVERTER, text, kind, where)


def _parse_part(node: ast.expr, kind: object, near: object, where: str) -> object:
    call = node if isinstance(node, ast.Call) else ast.Call(func=node, args=[], keywords=[])
    name = ast.unparse(call.func)
    cls = _resolve_class(name, kind, near, where)
    kinds = config_field_types(cls, kind, where)
    given = _bind_arguments(call, kinds, f"{where}: {name}")
    values = {field: _parse_value(value, kinds[field], cls, f"{where}.{field}") for field, value in given.items()}
    try:
        return build_config(cls, values, where)
    except TypeError:  # a field without a default was left out
        missing = [one.name for one in fields(cls) if one.name not in values and _is_required(one)]
        told = f"{' and '.join(missing)}; its fields are {', '.join(kinds)}"
        raise RecipeError(f"{where}: {name} also needs {told}") from None


def _bind_arguments(call: ast.Call, kinds: Mapping[str, object], who: str) -> dict[str, ast.expr]:
    """What was typed for each field: in order, then by name."""
    has = f"it has {', '.join(kinds)}" if kinds else "it has none"
    if len(call.args) > len(kinds):
        raise RecipeError(f"{who} was given {len(call.args)} values, more than it has fields; {has}")
    given = dict(zip(kinds, call.args, strict=False))
    for word in call.keywords:
        if word.arg is None or word.arg not in kinds or word.arg in given:
            raise RecipeError(f"{who} has no field {word.arg!r}, or was given it twice; {has}")
        given[word.arg] = word.value
    return given


def _resolve_class(name: str, kind: object, near: object, where: str) -> type:
    """The class that a name means here."""
    module, _, own = name.rpartition(".")
    arms = [arm for arm in union_members(kind) if isinstance(arm, type) and arm.__name__ == name]
    home = (near if isinstance(near, type) else type(near)).__module__
    found = arms[0] if arms else _import_name(module, own) if module else _find_nearby(name, home)
    if not isinstance(found, type):
        raise _unknown_part_error(name[:60], near, where)
    return found


def _import_name(module: str, name: str) -> object:
    """What a module of this library defines under a name; nothing else is ever imported."""
    try:
        return getattr(import_module(module), name, None) if module.startswith("unmask.") else None
    except ModuleNotFoundError:
        return None


def _find_nearby(name: str, module_name: str) -> object:
    """What the file of a part, or a file beside it, defines under a name. Files are read before one is imported."""
    found = getattr(sys.modules.get(module_name), name, None)
    folder = module_name.rpartition(".")[0]
    if found is not None or not folder.startswith("unmask.") or not name.isidentifier():
        return found
    for module in pkgutil.iter_modules(sys.modules[folder].__path__, f"{folder}."):
        spec = find_spec(module.name)
        if spec and spec.origin and re.search(rf"^class {name}\b", Path(spec.origin).read_text("utf-8"), re.MULTILINE):
            return _import_name(module.name, name)
    return None


def _unknown_part_error(typed: str, near: object, where: str) -> RecipeError:
    names = ", ".join(children_of(near))
    return RecipeError(
        f"{where}: there is no part {typed!r} that could stand here. Write one as Name(field=value), in full if it is "
        "from elsewhere (unmask.data.input_formats.packed.Packed(join=never))"
        + (f"; or set what it holds: {names}" if names else "")
    )


def _is_required(field: Field[object]) -> bool:
    """Whether a field has no usual value."""
    return field.default is MISSING and field.default_factory is MISSING
