"""The members of the family: found by walking `recipes/`, never listed.

A file `recipes/NAME.py` with a function `NAME` is a member; a dash in the name is an underscore in the file name
(`wwm-ext`, `wwm_ext.py`). Further functions of the file that return a recipe are variants, written as `NAME:VARIANT`.
A user's own recipe is given by a path.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TypeVar

import unmask.recipes
from unmask.config.model_type import ModelType
from unmask.config.sizes import SIZES, Size
from unmask.core.codec import override_many
from unmask.core.errors import RecipeError, UserError
from unmask.tasks.recipe import Recipe

T = TypeVar("T")


def members() -> tuple[Recipe, ...]:
    """Every member, the root first, then by year and name."""
    found = [_load_member(name) for name in _names()]
    return tuple(sorted(found, key=lambda recipe: (recipe.parent != "", recipe.year, recipe.name)))


def member(name: str, size: str = "") -> Recipe:
    """A member by name, a form of it (`NAME:FORM`) or a user's own recipe (`my_recipe.py:name`), in any size it has."""
    if name.endswith(".py"):
        return _from_file(name, "", size)
    if ".py:" in name:
        path, _, own = name.rpartition(":")
        return _from_file(path, own, size)
    known = _names()
    plain, _, form = name.partition(":")
    if plain not in known:
        raise RecipeError(
            f"There is no member '{plain}'. There are: {', '.join(known)}; or point at your_file.py:name."
        )
    return _load_form(plain, form, size) if form else _load_member(plain, size)


def sizes(name: str) -> Mapping[str, Size]:
    """The sizes of a member: those that its file names, else the published sizes of BERT."""
    found: Mapping[str, Size] = getattr(module_of(name), "SIZES", SIZES)
    return found


def module_of(name: str) -> ModuleType:
    """The file of a member."""
    return importlib.import_module(f"unmask.recipes.{_python_name(name)}")


def count_parameters(recipe: Recipe) -> int:
    """How large a member is with the vocabulary and the row length of its recipe, as papers and `transformers` count.

    Counted are embeddings, layers and the pooler over the first token, also where nothing trains it (RoBERTa), but no
    head. ELECTRA's class has no pooler, and its generator does not count.
    """
    pooler = 0 if recipe.model_type is ModelType.ELECTRA else recipe.network.pooler_parameters()
    return recipe.network.num_parameters(recipe.tokenizer.size, recipe.max_length) + pooler


def resolve_member(name: str, changes: Sequence[str] = (), size: str = "") -> Recipe:
    """A member by name, in a size, with every change `PATH=VALUE` applied at once."""
    return apply_changes(member(name, size), changes, "stages.0.max_length=256")


def apply_changes(value: T, changes: Sequence[str], example: str) -> T:
    """A recipe, or a part of one, with every change `PATH=VALUE` applied at once."""
    for change in changes:
        if "=" not in change:
            raise RecipeError(f"--set needs PATH=VALUE, such as {example}; found '{change}'.")
    return override_many(value, [(path, text) for path, _, text in (change.partition("=") for change in changes)])


def _names() -> list[str]:
    return [module.name.replace("_", "-") for module in pkgutil.iter_modules(unmask.recipes.__path__)]


def _python_name(name: str) -> str:
    return name.replace("-", "_")


def _load_member(name: str, size: str = "") -> Recipe:
    return _require_recipe(_build(module_of(name), name, size), name)


def _load_form(name: str, form: str, size: str) -> Recipe:
    """Another recipe in the file of a member."""
    module = module_of(name)
    made = {one: inspect.signature(getattr(module, one)).return_annotation for one in _recipe_names(module)}
    forms = [one for one, returned in made.items() if returned == "Recipe" and one != _python_name(name)]
    if form not in forms:
        raise RecipeError(f"{name} has no form '{form}'. It has: {', '.join(forms) or 'none but itself'}.")
    return _require_recipe(_build(module, form, size), f"{name}:{form}")


def _from_file(path: str, name: str, size: str) -> Recipe:
    if not Path(path).is_file():
        raise RecipeError(f"{path}: there is no such file to take a recipe from.")
    module = _import_file(path)
    recipes = ", ".join(_recipe_names(module)) or "no recipe at all"
    if not name:
        raise RecipeError(f"{path} is a file that may hold several recipes: add :name. It has {recipes}.")
    if not hasattr(module, name):
        raise RecipeError(f"{path} has no '{name}'; it has {recipes}.")
    with _explain_errors(path, f"{path}:{name}"):
        recipe = _build(module, name, size)
    return _require_recipe(recipe, f"{path}:{name}")


def _import_file(path: str) -> ModuleType:
    """The user's file as a module, which Python knows: a dataclass is built and read by the names of its module."""
    source = Path(path).read_bytes()
    spec = importlib.util.spec_from_file_location(f"own_recipe.{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    known = sys.modules.get(spec.name)
    # Two recipes of one file are compared, so they must share their parts: an unchanged file is run once.
    if known and known.__spec__ and (known.__spec__.origin, known.__spec__.loader_state) == (spec.origin, source):
        return known
    spec.loader_state = source
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        with _explain_errors(path, path):
            exec(compile(source, path, "exec", dont_inherit=True), vars(module))
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def _recipe_names(module: ModuleType) -> list[str]:
    """The names under which a file may hold a recipe: functions that it defines, and recipes."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (isinstance(value, Recipe) or (isinstance(value, FunctionType) and value.__module__ == module.__name__))
    ]


@contextmanager
def _explain_errors(path: str, otherwise: str) -> Iterator[None]:
    """Turn whatever goes wrong in a user's file into one sentence with the innermost line of that file."""
    try:
        yield
    except (Exception, SystemExit) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        kind, text = f"{type(error).__name__}: ", str(error)
        where = otherwise
        if isinstance(error, SyntaxError) and error.filename == path:
            where, text = f"{path}:{error.lineno or 1}", error.msg
        elif frames:
            where = f"{path}:{frames[-1].lineno}, in {frames[-1].name}".removesuffix(", in <module>")
        if isinstance(error, UserError):
            kind = ""
        raise RecipeError(f"{where}: {kind}{text}".rstrip(".: ") + ".") from error


def _build(module: ModuleType, name: str, size: str) -> object:
    make: object = getattr(module, _python_name(name), None)
    if not size:
        return make() if callable(make) else make
    known: Mapping[str, Size] = getattr(module, "SIZES", SIZES)
    if size not in known:
        raise RecipeError(f"{name} has no size '{size}'. It has: {', '.join(known)}.")
    if not callable(make) or not inspect.signature(make).parameters:
        raise RecipeError(f"{name} comes in one size only: its function takes no size. Leave --size out.")
    return make(known[size])


def _require_recipe(recipe: object, where: str) -> Recipe:
    if not isinstance(recipe, Recipe):
        raise RecipeError(f"{where} should be a function that returns a Recipe, found {type(recipe).__name__}.")
    return recipe
