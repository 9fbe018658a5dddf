"""Names of parts: the tag under which a class is saved, and the class that a tag or a typed name stands for.

A part is a frozen dataclass at the top of a module. The tag of a part of `unmask` is its class name in kebab case
(`MaskTokens` is `mask-tokens`), so that it survives a move to another module. A class that is renamed keeps its tag
with the class attribute `saved_as: ClassVar[str] = "mask-tokens"`. A part of another module is `module:Name`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from unmask.core.errors import RecipeError

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DEFINITION = re.compile(
    r'^@dataclass\(frozen=True[^\n]*\)\nclass (\w+)|^    saved_as: ClassVar\[str\] = "([a-z\d-]+)"', re.MULTILINE
)
_PACKAGE = Path(__file__).parents[2]


def tag_of(cls: type) -> str:
    """The tag under which a class is saved."""
    if not cls.__module__.startswith(f"{_PACKAGE.name}."):
        return f"{cls.__module__}:{cls.__qualname__}"
    return str(vars(cls).get("saved_as") or _kebab_case(cls.__name__))


def class_of_tag(tag: str, where: str, modules: Mapping[str, ModuleType]) -> type:
    """The class of a tag: a part of `unmask`, or one that a trusted module defines. No other module is imported."""
    home, _, name = tag.rpartition(":")
    if home and home not in modules:
        raise RecipeError(f"{where}: the part {tag!r} is not of unmask; pass the module that defines it as trusted")
    found = vars(modules[home]).get(name) if home else _import_class(_locations()[0].get(tag))
    if not isinstance(found, type) or (home and found.__module__ != home):
        raise RecipeError(f"{where}: there is no part {tag!r} in {home or 'this version of unmask'}")
    return found


def class_of_name(name: str) -> type | None:
    """The part of `unmask` with this class name, if there is one."""
    return _import_class(_locations()[1].get(name))


def _import_class(location: tuple[str, str] | None) -> type | None:
    found = getattr(import_module(location[0]), location[1], None) if location else None
    return found if isinstance(found, type) else None


@cache
def _locations() -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    """Module and class name of every part, by tag and by class name. The source is read; nothing is imported."""
    by_tag: dict[str, tuple[str, str]] = {}
    by_name: dict[str, tuple[str, str]] = {}
    for path in sorted(_PACKAGE.rglob("*.py")):
        module = ".".join([_PACKAGE.name, *path.relative_to(_PACKAGE).with_suffix("").parts])
        name = ""
        for found in _DEFINITION.finditer(path.read_text(encoding="utf-8")):
            if found[1]:
                name = found[1]
                by_tag[_kebab_case(name)] = by_name[name] = (module, name)
            else:
                del by_tag[_kebab_case(name)]
                by_tag[found[2]] = (module, name)
    return by_tag, by_name


def _kebab_case(name: str) -> str:
    return _WORD_START.sub("-", name).lower()
