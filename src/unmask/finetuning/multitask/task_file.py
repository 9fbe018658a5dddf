"""A TOML file of tasks for multi-task fine-tuning. Unknown keys are refused.

    [tasks.rte]
    train = "rte/train.jsonl"          # paths are relative to this file
    dev = "rte/dev.jsonl"              # default: one text in ten is split off
    task_type = "san-pair"                  # default: inferred from the file
    text_columns = "premise,hypothesis"     # default, as for `label_column`: usual names
    label_column = "label"
    weight = 1.0                            # weight of the loss of this task
    metric = "accuracy"                     # main metric; default: that of the task type

`pooling`, `max_candidates`, `use_sigmoid`, `crf` and `constrained_tags` are as in `unmask finetune`.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unmask.core.codec import override, override_many
from unmask.core.errors import InputError, RecipeError
from unmask.finetuning.data.columns import ColumnChoice
from unmask.finetuning.task_data import TaskData, load_task_data
from unmask.finetuning.task_options import TaskOptions, parse_task_type

OPTIONS = ("pooling", "max_candidates", "use_sigmoid", "crf", "constrained_tags")
"""Options of some task types."""
KEYS = ("train", "dev", "task_type", "text_columns", "label_column", "weight", "metric", *OPTIONS)
RESERVED_NAMES = frozenset({"encoder", "each", "checkpoints"})
"""Other entries of a run folder, which has a folder for each task."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_EXAMPLE = 'such as: [tasks.rte] and below it train = "rte.jsonl"'


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """One of several tasks: its name, which is that of its head and its folder, its data and its loss weight."""

    name: str
    data: TaskData
    weight: float = 1.0
    metric: str = ""
    """The main metric; empty for that of the task type."""


def read_tasks(path: Path, seed: int = 0) -> tuple[TaskEntry, ...]:
    """Read all tasks, in the order of the file. The seed decides the dev split where there is no `dev`."""
    declared = _declared(path)
    for name in declared:
        _check_name(path, name, declared)
    return tuple(_task(path, name, settings, seed) for name, settings in declared.items())


def _declared(path: Path) -> Mapping[str, Any]:
    """The tables under `tasks`."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Give a TOML file of tasks, {_EXAMPLE}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}. Every task needs a table of its own, {_EXAMPLE}") from error
    others = [name for name in content if name != "tasks"]
    if others:
        raise InputError(f"{path}: {others[0]!r} is outside of any task. All tasks are tables under tasks, {_EXAMPLE}")
    tasks = content.get("tasks", {})
    if not isinstance(tasks, dict) or not tasks:
        raise InputError(f"{path} declares no task. Add at least one, {_EXAMPLE}")
    return tasks


def _check_name(path: Path, name: str, declared: Mapping[str, Any]) -> None:
    """Refuse a name that cannot be a folder, or is that of another task."""
    if not _NAME.fullmatch(name) or name in RESERVED_NAMES:
        raise InputError(
            f"{path}: a task cannot be called {name!r}. Names have letters a to z, digits, - and _, begin with a "
            f"letter or a digit, and are not {', '.join(sorted(RESERVED_NAMES))}."
        )
    if not isinstance(declared[name], dict):
        raise InputError(f"{path}: {name!r} should be a table of its own, {_EXAMPLE}")
    alike = [other for other in declared if other.lower() == name.lower()]
    if len(alike) > 1:
        raise InputError(f"{path}: the tasks {' and '.join(alike)} have the same name. Rename one of them.")


def _task(path: Path, name: str, settings: Mapping[str, Any], seed: int) -> TaskEntry:
    """One task; errors name it."""
    try:
        for key in settings:
            if key not in KEYS:
                raise InputError(f"there is no key {key!r}; known are {', '.join(KEYS)}")
        if "train" not in settings:
            raise InputError('the training file is missing. Add it: train = "train.jsonl"')
        options = _task_options(settings)
        dev = path.parent / _text(settings, "dev") if "dev" in settings else None
        data = load_task_data(path.parent / _text(settings, "train"), dev, options, seed)
        return TaskEntry(name, _named(data, name), _weight(settings), _text(settings, "metric"))
    except (InputError, RecipeError) as error:
        raise InputError(f"{path}, task {name!r}: {error}") from error


def _task_options(settings: Mapping[str, Any]) -> TaskOptions:
    """The options of a task beyond its files."""
    columns = ColumnChoice.parse(_text_columns(settings), _text(settings, "label_column"))
    options = TaskOptions(task_type=parse_task_type(_text(settings, "task_type")), columns=columns)
    return override_many(options, [(key, str(settings[key])) for key in OPTIONS if key in settings])


def _named(data: TaskData, name: str) -> TaskData:
    """The same data with a task, and so a head, of this name."""
    return replace(data, task=override(data.task, "name", name))


def _text_columns(settings: Mapping[str, Any]) -> str | list[str]:
    """Names of columns: a list, or one text with commas."""
    given: str | list[str] = settings.get("text_columns", "")
    if not isinstance(given, str | list) or not all(isinstance(name, str) for name in given):
        raise InputError('`text_columns` should be a text or a list of texts, such as "premise,hypothesis"')
    return given


def _text(settings: Mapping[str, Any], key: str) -> str:
    value = settings.get(key, "")
    if not isinstance(value, str):
        raise InputError(f"`{key}` should be a text in quotes, found {value!r}")
    return value.strip()


def _weight(settings: Mapping[str, Any]) -> float:
    value = settings.get("weight", 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InputError(f"`weight` should be a positive number, found {value!r}")
    return float(value)
