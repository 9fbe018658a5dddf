"""Recipes to JSON and back.

Values are trees of frozen dataclasses (parts) over enums, tuples, mappings, text and numbers. In JSON a part is an
object whose `type` is its tag (`part_names.py`). Functions, arrays and other live objects are refused, and decoding
runs no code that a file names. Encoding and decoding follow the same annotations, so that a value either comes back
equal or is refused when it is encoded. A field that JSON lacks takes its default; a field that the class lacks is
refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum, EnumType
from types import MappingProxyType, ModuleType, UnionType
from typing import Any, NoReturn, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from unmask.core.codec.part_names import class_of_tag, tag_of
from unmask.core.codec.pretty import children_of, key_name
from unmask.core.errors import RecipeError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json]"
Reader: TypeAlias = Callable[[Any, Any], object]
"""Reads a leaf of a given type; what does not fit raises an error."""
T = TypeVar("T")

TAG = "type"
"""The key of a part's tag."""
_PLAIN = (bool, int, float, str)
_IN_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def encode(value: object) -> Json:
    """The value as JSON data. Equal values give equal data; what could not be decoded is refused."""
    if type(value) is tuple:
        return [encode(item) for item in value]
    return _encode(value, type(value), type(value).__name__)


def decode(data: Json, kind: type[T], trusted: Sequence[ModuleType] = ()) -> T:
    """The value that was encoded. Parts come from `unmask` and the `trusted` modules, from nowhere else."""
    return cast(T, _decode(data, kind, _name(kind), {module.__name__: module for module in trusted}))


def fill_defaults(data: Json) -> Json:
    """The same JSON data in which the parts of `unmask` also have the fields that were added with a default since."""
    if isinstance(data, dict):
        try:
            return encode(decode(data, object)) if TAG in data else {key: fill_defaults(data[key]) for key in data}
        except RecipeError:  # a part of a user's own file, or one that no longer exists
            return {key: fill_defaults(data[key]) for key in data}
    return [fill_defaults(item) for item in data] if isinstance(data, list) else data


def dumps(value: object) -> str:
    """The value as JSON text: fields in the order of their declaration, mappings sorted by key."""
    return json.dumps(encode(value), indent=2, ensure_ascii=False) + "\n"


def fingerprint(value: object) -> str:
    """A digest of 32 hex digits; the order in which fields are declared does not change it."""
    text = json.dumps(encode(value), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _encode(value: object, declared: object, where: str) -> Json:
    kind = union_member(declared, is_dataclass(value), where)
    if isinstance(kind, EnumType) and type(value) is kind:
        return str(cast(Enum, value).name)
    if kind in _PLAIN:
        return cast(Json, read_leaf(read_json_leaf, value, kind, where))
    kinds = field_types(value, kind, where)
    inside = {name: _encode(item, kinds[name], f"{where}.{name}") for name, item in children_of(value).items()}
    if isinstance(value, tuple):
        return list(inside.values())
    if isinstance(value, Mapping):
        return {name: inside[name] for name in sorted(inside)}
    return {TAG: tag_of(type(value)), **inside}


def _decode(data: Json, declared: object, where: str, modules: Mapping[str, ModuleType]) -> object:
    kind = union_member(declared, isinstance(data, dict) and TAG in data, where)
    if is_config_type(kind):
        return _decode_config(data, kind, where, modules)
    if get_origin(kind) is tuple and isinstance(data, list):
        items = zip(data, tuple_types(kind, len(data), where), strict=True)
        return tuple(_decode(item, of, f"{where}.{i}", modules) for i, (item, of) in enumerate(items))
    if get_origin(kind) is Mapping and isinstance(data, dict):
        key_kind, of = get_args(kind)
        keys = {key: _read_key(key, key_kind, where) for key in data}
        return MappingProxyType({keys[key]: _decode(data[key], of, f"{where}.{key}", modules) for key in data})
    return read_leaf(read_json_leaf, data, kind, where)


def _decode_config(data: Json, kind: object, where: str, modules: Mapping[str, ModuleType]) -> object:
    if not isinstance(data, dict) or not isinstance(data.get(TAG), str):
        _refuse(where, f"an object whose {TAG!r} names a {_name(kind)}", data)
    cls = class_of_tag(str(data[TAG]), where, modules)
    kinds = config_field_types(cls, kind, where)
    unknown = [name for name in data if name != TAG and name not in kinds]
    missing = [name for name in required_fields(cls) if name not in data]
    if unknown or missing:
        found = " and ".join([*(f"an unknown {name}" for name in unknown), *(f"no {name}" for name in missing)])
        raise RecipeError(f"{where}: {_name(cls)} has the fields {', '.join(kinds) or 'none'}; found {found}")
    given = {name: _decode(data[name], of, f"{where}.{name}", modules) for name, of in kinds.items() if name in data}
    return build_config(cls, given, where)


def build_config(cls: type, values: Mapping[str, object], where: str) -> object:
    """A part from its fields; its own refusal is raised again with the path of the part."""
    try:
        return cls(**values)
    except ValueError as error:
        raise RecipeError(f"{where}: {error}") from error


def field_types(value: object, kind: object, where: str) -> dict[str, object]:
    """The annotation of each item inside a value, once the value is found to fit its own annotation."""
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
    """The fields of a part with their annotations; a part that does not fit `kind` or cannot be saved is refused."""
    if not (is_dataclass(cls) and cast(Any, cls).__dataclass_params__.frozen and "<locals>" not in cls.__qualname__):
        raise RecipeError(
            f"{where}: {_name(cls)} must be a frozen dataclass defined at the top of a module to be saved"
        )
    if TAG in (f.name for f in fields(cls)):
        raise RecipeError(f"{where}: {_name(cls)} has a field {TAG!r}, which is the key of tags in JSON; rename it")
    if not any(_fits(cls, arm) for arm in union_members(kind)):
        wanted = " or ".join(map(_name, union_members(kind)))
        raise RecipeError(f"{where} needs a {wanted}, found a {_name(cls)}, which does not implement it")
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls) if f.init}


def required_fields(cls: type) -> list[str]:
    """The fields of a part that have no default."""
    return [f.name for f in fields(cls) if f.init and f.default is MISSING and f.default_factory is MISSING]


def _fits(cls: type, arm: object) -> bool:
    home = get_origin(arm) or arm
    if isinstance(home, type) and not getattr(home, "_is_protocol", False):
        return issubclass(cls, home)
    bases = [base for base in cast(type, home).__mro__ if getattr(base, "_is_protocol", False)]
    needed = {name for base in bases for name in (*vars(base), *getattr(base, "__annotations__", {}))}
    has = {*dir(cls), *(f.name for f in fields(cls))}
    return all(name in has for name in needed if name == "__call__" or not name.startswith("_"))


def tuple_types(kind: object, count: int, where: str) -> Sequence[object]:
    """The annotations of the items of a tuple of `count` values."""
    args = get_args(kind)
    if len(args) == 2 and args[1] is Ellipsis:
        return (args[0],) * count
    if len(args) != count:
        raise RecipeError(f"{where} needs {len(args)} values, found {count}")
    return args


def union_member(kind: object, part: bool, where: str) -> object:
    """The members of a union that a value can have: its parts, or its only other type."""
    arms = union_members(kind)
    parts, plain = [arm for arm in arms if is_config_type(arm)], [arm for arm in arms if not is_config_type(arm)]
    if len(plain) > 1:
        raise RecipeError(f"{where} is declared as {_name(kind)}; a union may hold parts and at most one other type")
    return cast(Any, Union)[tuple(parts)] if parts and (part or not plain) else plain[0]


def union_members(kind: object) -> tuple[object, ...]:
    """The types that a union allows; any other type is its only member."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def is_config_type(kind: object) -> bool:
    """Whether values of this type are parts: frozen dataclasses, or implementations of a protocol."""
    homes = [get_origin(arm) or arm for arm in union_members(kind)]
    return all(home is object or is_dataclass(home) or getattr(home, "_is_protocol", False) for home in homes)


def read_leaf(reader: Reader, value: object, kind: object, where: str) -> object:
    """A number, a text or a member of an enum."""
    named = list(kind.__members__) if isinstance(kind, EnumType) else []
    if not (kind in _PLAIN or named):
        _refuse(where, f"{_name(kind)}, as plain data", value)
    try:
        made = reader(value, kind)
    except (TypeError, ValueError, KeyError, OverflowError):
        if reader is read_json_leaf:
            _refuse(where, f"one of {', '.join(named)}" if named else _name(kind), value)
        needs = f"one of {', '.join(named).lower()}" if named else _IN_WORDS[cast(type, kind)]
        raise RecipeError(f"{where} needs {needs}, found {str(value)[:60]!r}") from None
    if isinstance(made, float) and not math.isfinite(made):
        _refuse(where, "a finite number", value)
    return made


def read_json_leaf(value: Any, kind: Any) -> object:  # noqa: ANN401 - whatever JSON holds
    """A leaf as JSON holds it: the text "5" is no number."""
    if isinstance(kind, EnumType):
        return kind[str(value)]
    if kind is float and type(value) is int and float(value) == value:
        return float(value)
    if type(value) is not kind:
        raise TypeError
    return value


def read_text_leaf(text: Any, kind: Any) -> object:  # noqa: ANN401 - see `Reader`
    """A leaf from typed text: the text "5" is a number where one is needed."""
    if isinstance(kind, EnumType):
        return kind[text.upper()]
    return {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)


def _read_key(text: str, kind: object, where: str) -> object:
    key = read_leaf(read_text_leaf, text, kind, where)
    if key_name(key) != text or text == TAG:
        _refuse(where, f"a key that is written as {key_name(key)!r} and is not {TAG!r}, the key of tags", text)
    return key


def _name(kind: object) -> str:
    return kind.__qualname__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("typing.", "")


def _refuse(where: str, needs: str, found: object) -> NoReturn:
    raise RecipeError(f"{where} needs {needs}, found {type(found).__name__} {repr(found)[:60]}")
