"""Several tasks for one trunk, declared in one small file.

What arrives: the path of a TOML file. What leaves: `Task`s whose jobs have passed every check that needs no network.
What never happens here: a key that is passed over. A misspelt word would change what is learned, and nobody would know.

    [tasks.rte]
    train = "rte/train.jsonl"          # paths are relative to this file
    dev = "rte/dev.jsonl"              # left out: one text in ten is set aside
    kind = "pair"                      # left out: the file decides
    fields = "premise,hypothesis"      # left out, as `label`: usual names are found
    label = "label"
    weight = 1.0                       # what a loss of this task counts
    metric = "accuracy"                # the score to compare by; left out: the usual one

`pooling`, `max_candidates`, `use_sigmoid`, `crf` and `constrained_tags` say the same as the options of `unmask finetune`.
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
"""Wishes about some kinds of tasks."""
KEYS = ("train", "dev", "task_type", "text_columns", "label_column", "weight", "metric", *OPTIONS)
RESERVED_NAMES = frozenset({"encoder", "each", "checkpoints"})
"""What else lies in the folder of a run, beside a folder for each task."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_EXAMPLE = 'such as: [tasks.rte] and below it train = "rte.jsonl"'


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """One of several tasks: its name, which is that of its head and its folder; its files; what its losses count."""

    name: str
    data: TaskData
    weight: float = 1.0
    metric: str = ""
    """The score to compare by; nothing means the first that the task has."""


def read_tasks(path: Path, seed: int = 0) -> tuple[TaskEntry, ...]:
    """Read all tasks, in the order of the file. The seed decides what is set aside where there is no `dev`."""
    declared = _declared(path)
    for name in declared:
        _check_name(path, name, declared)
    return tuple(_task(path, name, said, seed) for name, said in declared.items())


def _declared(path: Path) -> Mapping[str, Any]:
    """The tables under `tasks`."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Give a TOML file of tasks, {_EXAMPLE}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}. Every task needs a table of its own, {_EXAMPLE}") from error
    others = [name for name in said if name != "tasks"]
    if others:
        raise InputError(
            f"{path}: {others[0]!r} stands outside of any task. All tasks are tables under tasks, {_EXAMPLE}"
        )
    tasks = said.get("tasks", {})
    if not isinstance(tasks, dict) or not tasks:
        raise InputError(f"{path} declares no task. Add at least one, {_EXAMPLE}")
    return tasks


def _check_name(path: Path, name: str, declared: Mapping[str, Any]) -> None:
    """A name becomes a folder, so it must be able to be one, and no other task's."""
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


def _task(path: Path, name: str, said: Mapping[str, Any], seed: int) -> TaskEntry:
    """One task; whatever is wrong with it is told with its name."""
    try:
        for key in said:
            if key not in KEYS:
                raise InputError(f"there is no key {key!r}; known are {', '.join(KEYS)}")
        if "train" not in said:
            raise InputError('the file to learn from is missing. Add it: train = "train.jsonl"')
        wish = _task_options(said)
        dev = path.parent / _text(said, "dev") if "dev" in said else None
        job = load_task_data(path.parent / _text(said, "train"), dev, wish, seed)
        return TaskEntry(name, _named(job, name), _weight(said), _text(said, "metric"))
    except (InputError, RecipeError) as error:
        raise InputError(f"{path}, task {name!r}: {error}") from error


def _task_options(said: Mapping[str, Any]) -> TaskOptions:
    """What is said about a task beyond its files."""
    wish = TaskOptions(
        task_type=parse_task_type(_text(said, "task_type")), columns=ColumnChoice.parse(_fields(said), _text(said, "label_column"))
    )
    return override_many(wish, [(key, str(said[key])) for key in OPTIONS if key in said])


def _named(job: TaskData, name: str) -> TaskData:
    """The same job with an output, and so a head, of this name."""
    return replace(job, task=override(job.task, "name", name))


def _fields(said: Mapping[str, Any]) -> str | list[str]:
    """Names of fields: a list, or one text with commas."""
    given: str | list[str] = said.get("text_columns", "")
    if not isinstance(given, str | list) or not all(isinstance(name, str) for name in given):
        raise InputError('`text_columns` should be a text or a list of texts, such as "premise,hypothesis"')
    return given


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key, "")
    if not isinstance(value, str):
        raise InputError(f"`{key}` should be a text in quotes, found {value!r}")
    return value.strip()


def _weight(said: Mapping[str, Any]) -> float:
    value = said.get("weight", 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InputError(f"`weight` should be a positive number, found {value!r}")
    return float(value)
