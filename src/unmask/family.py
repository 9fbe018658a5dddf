"""The members that exist: found by walking `recipes/`, never listed.

What arrives: a name, or a path to a user's own recipe. What leaves: the recipe.
What never happens here: a registry. A file `recipes/NAME.py` with a function `NAME` is a member.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from pathlib import Path

import unmask.recipes
from unmask.errors import RecipeError
from unmask.tasks import Recipe


def members() -> tuple[Recipe, ...]:
    """Every member, the root first, then by year and name."""
    names = [module.name for module in pkgutil.iter_modules(unmask.recipes.__path__)]
    found = [_call(importlib.import_module(f"unmask.recipes.{name}"), name, name) for name in names]
    return tuple(sorted(found, key=lambda recipe: (recipe.parent != "", recipe.year, recipe.name)))


def member(name: str) -> Recipe:
    """A member by name, or a user's own recipe written as `my_recipe.py:name`."""
    if ".py:" in name:
        return _from_file(*name.rsplit(":", 1))
    known = [module.name for module in pkgutil.iter_modules(unmask.recipes.__path__)]
    if name not in known:
        raise RecipeError(f"There is no member '{name}'. There are: {', '.join(known)}; or point at your_file.py:name.")
    return _call(importlib.import_module(f"unmask.recipes.{name}"), name, name)


def _from_file(path: str, name: str) -> Recipe:
    if not Path(path).is_file():
        raise RecipeError(f"{path}: there is no such file to take the recipe '{name}' from.")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return _call(module, name, f"{path}:{name}")


def _call(module: object, name: str, where: str) -> Recipe:
    make = getattr(module, name, None)
    recipe = make() if callable(make) else make
    if not isinstance(recipe, Recipe):
        raise RecipeError(f"{where} should be a function that returns a Recipe, found {type(recipe).__name__}.")
    return recipe
