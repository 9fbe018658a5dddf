"""Values to JSON and back: a recipe is data, so it can be saved, changed by name and named by a digest.

What arrives: trees of frozen dataclasses (recipes and their parts) over enums, tuples, mappings, text and numbers.
What leaves: JSON in which every part carries its own name, and a fingerprint.
What never happens here: running code that a file names. A tag is looked up under `unmask` or in a module that the
caller hands over, and must be a frozen dataclass defined there. Functions, arrays and other live objects are refused.

Encoding and decoding walk the same annotations, so a value either comes back equal or is refused when it is encoded.
Leaves are structured by cattrs: exactly as they stand in JSON ("5" is no number), parsed in text that a person typed.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum, EnumType
from types import MappingProxyType, ModuleType, UnionType
from typing import Any, NoReturn, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from cattrs import Converter

from unmask.core.codec.pretty import children_of, key_name
from unmask.core.errors import RecipeError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json]"
T = TypeVar("T")

_TAG = "part"
_PLAIN = (bool, int, float, str)


def encode(value: object) -> Json:
    """The value as JSON-able data. Equal values give equal data; what could not come back is refused here."""
    if type(value) is tuple:
        return [encode(item) for item in value]
    return _encode(value, type(value), type(value).__name__)


def decode(data: Json, kind: type[T], trusted: Sequence[ModuleType] = ()) -> T:
    """The value that `encode` was given. Parts are found under `unmask` and in the `trusted` modules, nowhere else."""
    return cast(T, _decode(data, kind, _name(kind), {module.__name__: module for module in trusted}))


def dumps(value: object) -> str:
    """The value as JSON text for a file: fields in the order of their declaration, mappings sorted by key."""
    return json.dumps(encode(value), indent=2, ensure_ascii=False) + "\n"


def fingerprint(value: object) -> str:
    """A digest of 32 hex digits that names the value. The order in which fields are declared does not enter it."""
    text = json.dumps(encode(value), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _encode(value: object, declared: object, where: str) -> Json:
    kind = union_member(declared, is_dataclass(value), where)
    if isinstance(kind, EnumType) and type(value) is kind:
        return str(cast(Enum, value).name)
    if kind in _PLAIN:
        return cast(Json, convert_leaf(_JSON_CONVERTER, value, kind, where))
    kinds = field_types(value, kind, where)
    inside = {name: _encode(item, kinds[name], f"{where}.{name}") for name, item in children_of(value).items()}
    if isinstance(value, tuple):
        return list(inside.values())
    if isinstance(value, Mapping):
        return {name: inside[name] for name in sorted(inside)}
    return {_TAG: f"{type(value).__module__}:{type(value).__qualname__}", **inside}


def _decode(data: Json, declared: object, where: str, modules: Mapping[str, ModuleType]) -> object:
    kind = union_member(declared, isinstance(data, dict) and _TAG in data, where)
    if is_config_type(kind):
        return _decode_config(data, kind, where, modules)
    if get_origin(kind) is tuple and isinstance(data, list):
        items = zip(data, tuple_types(kind, len(data), where), strict=True)
        return tuple(_decode(item, of, f"{where}.{i}", modules) for i, (item, of) in enumerate(items))
    if get_origin(kind) is Mapping and isinstance(data, dict):
        key_kind, of = get_args(kind)
        keys = {key: _read_key(key, key_kind, where) for key in data}
        return MappingProxyType({keys[key]: _decode(data[key], of, f"{where}.{key}", modules) for key in data})
    return convert_leaf(_JSON_CONVERTER, data, kind, where)


def _decode_config(data: Json, kind: object, where: str, modules: Mapping[str, ModuleType]) -> object:
    if not isinstance(data, dict) or not isinstance(data.get(_TAG), str):
        _refuse(where, f"an object whose {_TAG!r} names a {_name(kind)}", data)
    cls = _find(str(data[_TAG]), where, modules)
    kinds = config_field_types(cls, kind, where)
    if data.keys() - {_TAG} != kinds.keys():
        found = ", ".join(name for name in data if name != _TAG) or "none"
        raise RecipeError(f"{where}: {_name(cls)} needs exactly the fields {', '.join(kinds) or 'none'}, found {found}")
    return build_config(
        cls, {name: _decode(data[name], of, f"{where}.{name}", modules) for name, of in kinds.items()}, where
    )


def _find(tag: str, where: str, modules: Mapping[str, ModuleType]) -> type:
    """The class that a tag names. Only `unmask` is ever imported; every other module must have been handed over."""
    home, _, qualname = tag.partition(":")
    if home not in modules and not home.startswith("unmask."):
        raise RecipeError(f"{where}: the part {tag!r} lies outside unmask; the module it comes from must be given too")
    try:
        found: object = modules[home] if home in modules else importlib.import_module(home)
    except ModuleNotFoundError as error:
        raise RecipeError(f"{where}: the part {tag!r} names a module that does not exist") from error
    for name in qualname.split("."):
        found = vars(found).get(name) if isinstance(found, ModuleType | type) else None
    if not isinstance(found, type) or found.__module__ != home:
        raise RecipeError(f"{where}: the part {tag!r} names nothing that {home} defines")
    return found


def build_config(cls: type, values: Mapping[str, object], where: str) -> object:
    """A part from its fields; what it refuses is told with the place where it stands."""
    try:
        return cls(**values)
    except ValueError as error:
        raise RecipeError(f"{where}: {error}") from error


def field_types(value: object, kind: object, where: str) -> dict[str, object]:
    """The annotation of each thing inside a value, once the value itself is found to fit its own."""
    if is_config_type(kind) and is_dataclass(value):
        return config_field_types(type(value), kind, where)
    if get_origin(kind) is tuple and type(value) is tuple:
        return {str(i): of for i, of in enumerate(tuple_types(kind, len(value), where))}
    if get_origin(kind) is not Mapping or not isinstance(value, dict | MappingProxyType):
        _refuse(where, f"{_name(kind)}, as plain data", value)
    key_kind, of = get_args(kind)
    if any(_read_key(key_name(key), key_kind, where) != key for key in value):
        _refuse(where, f"{_name(key_kind)} as keys", value)
    return dict.fromkeys(map(key_name, value), of)


def config_field_types(cls: type, kind: object, where: str) -> dict[str, object]:
    """The fields of a part with their annotations, or a refusal if the part cannot stand here or cannot be saved."""
    if not (is_dataclass(cls) and cast(Any, cls).__dataclass_params__.frozen and "<locals>" not in cls.__qualname__):
        raise RecipeError(
            f"{where}: {_name(cls)} must be a frozen dataclass defined at the top of a module to be saved"
        )
    if _TAG in (f.name for f in fields(cls)):
        raise RecipeError(f"{where}: {_name(cls)} has a field {_TAG!r}, the word that names parts in JSON; rename it")
    if not any(_fits(cls, arm) for arm in union_members(kind)):
        wanted = " or ".join(map(_name, union_members(kind)))
        raise RecipeError(f"{where} needs a {wanted}, found a {_name(cls)}, which does not do what that one does")
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls) if f.init}


def _fits(cls: type, arm: object) -> bool:
    home = get_origin(arm) or arm
    if isinstance(home, type) and not getattr(home, "_is_protocol", False):
        return issubclass(cls, home)
    bases = [base for base in cast(type, home).__mro__ if getattr(base, "_is_protocol", False)]
    asked = {name for base in bases for name in (*vars(base), *getattr(base, "__annotations__", {}))}
    has = {*dir(cls), *(f.name for f in fields(cls))}
    return all(name in has for name in asked if name == "__call__" or not name.startswith("_"))


def tuple_types(kind: object, count: int, where: str) -> Sequence[object]:
    """The annotation of each of so many values of a tuple."""
    args = get_args(kind)
    if len(args) == 2 and args[1] is Ellipsis:
        return (args[0],) * count
    if len(args) != count:
        raise RecipeError(f"{where} needs {len(args)} values, found {count}")
    return args


def union_member(kind: object, part: bool, where: str) -> object:
    """The arm of a union that a value takes: its parts know themselves by their tag, so one other arm is possible."""
    arms = union_members(kind)
    parts, plain = [arm for arm in arms if is_config_type(arm)], [arm for arm in arms if not is_config_type(arm)]
    if len(plain) > 1:
        raise RecipeError(f"{where} is declared as {_name(kind)}; a union may hold parts and at most one other type")
    return cast(Any, Union)[tuple(parts)] if parts and (part or not plain) else plain[0]


def union_members(kind: object) -> tuple[object, ...]:
    """The types that a union allows; a plain type is its only arm."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def is_config_type(kind: object) -> bool:
    """Whether values of this type are parts: frozen dataclasses, or whatever does what a protocol says."""
    homes = [get_origin(arm) or arm for arm in union_members(kind)]
    return all(home is object or is_dataclass(home) or getattr(home, "_is_protocol", False) for home in homes)


def _read_key(text: str, kind: object, where: str) -> object:
    key = convert_leaf(TEXT_CONVERTER, text, kind, where)
    if key_name(key) != text or text == _TAG:
        _refuse(where, f"a key that is written as {key_name(key)!r} and is not {_TAG!r}, which names parts", text)
    return key


def _name(kind: object) -> str:
    return kind.__qualname__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("typing.", "")


def _refuse(where: str, needs: str, found: object) -> NoReturn:
    raise RecipeError(f"{where} needs {needs}, found {type(found).__name__} {repr(found)[:60]}")


def convert_leaf(converter: Converter, value: object, kind: object, where: str) -> object:
    """A number, a text or an enum member, as the converter reads it."""
    named = list(kind.__members__) if isinstance(kind, EnumType) else []
    if not (kind in _PLAIN or named):
        _refuse(where, f"{_name(kind)}, as plain data", value)
    try:
        made: object = converter.structure(value, cast(type, kind))
    except (TypeError, ValueError, KeyError, OverflowError):
        if converter is _JSON_CONVERTER:
            _refuse(where, f"one of {', '.join(named)}" if named else _name(kind), value)
        needs = f"one of {', '.join(named).lower()}" if named else _IN_WORDS[cast(type, kind)]
        raise RecipeError(f"{where} needs {needs}, found {str(value)[:60]!r}") from None
    if isinstance(made, float) and not math.isfinite(made):
        _refuse(where, "a finite number", value)
    return made


def _structure_json(value: object, kind: type) -> object:
    if isinstance(kind, EnumType):
        return kind[str(value)]
    if kind is float and type(value) is int and float(value) == value:
        return float(value)
    if type(value) is not kind:
        raise TypeError
    return value


def _structure_text(text: str, kind: type) -> object:
    if isinstance(kind, EnumType):
        return kind[text.upper()]
    return {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)


def _converter(hook: Callable[[Any, Any], object]) -> Converter:
    converter = Converter()
    for kind in (*_PLAIN, Enum):
        converter.register_structure_hook(kind, hook)
    return converter


_IN_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
_JSON_CONVERTER = _converter(_structure_json)
TEXT_CONVERTER = _converter(_structure_text)
