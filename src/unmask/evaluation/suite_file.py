"""The folder of an evaluation suite: files `NAME.train.*` and `NAME.dev.*` per task, and settings.

`NAME.test.*` is predicted too. A file `suite.toml` may set, under `[NAME]`, options of `unmask finetune` (`task_type`,
`epochs`, `lr`, `max_length` ...) and `metric`, the main metric; under `[all]` options of every task.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from unmask.core.errors import InputError
from unmask.data.text.files.paths import strip_compression_suffix

SETTINGS_FILE = "suite.toml"
_SWITCHES = frozenset({"crf"})
_OPTIONS = _SWITCHES | {
    "task_type",
    "text_columns",
    "label_column",
    "epochs",
    "lr",
    "batch_size",
    "max_length",
    "pooling",
    "method",
}


@dataclass(frozen=True, slots=True)
class SuiteTask:
    """One task of a suite."""

    name: str
    train: Path
    dev: Path
    tests: tuple[Path, ...] = ()
    """Unlabelled files to predict; none or one."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of `unmask finetune` beyond the files."""
    metric: str = ""
    """The main metric; empty for that of the task type."""

    def option_args(self) -> list[str]:
        """The options as command line arguments."""
        return [word for name, value in self.options.items() for word in _to_args(name, value)]


def read_suite(folder: Path, task_names: Sequence[str] = ()) -> tuple[SuiteTask, ...]:
    """The tasks of a folder by name, or those of `task_names`."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder. A suite is a folder of NAME.train.* and NAME.dev.* files.")
    found = {part: _parts(folder, part) for part in ("train", "dev", "test")}
    names = sorted(found["train"].keys() | found["dev"].keys())
    for name in names:
        for part, other in (("train", "dev"), ("dev", "train")):
            if name not in found[part]:
                raise InputError(f"{found[other][name]} has no {name}.{part}.* with it. A task needs both files.")
    if not names:
        raise InputError(f"{folder} holds no task: none of its files are called NAME.train.* and NAME.dev.*.")
    unknown = sorted(set(task_names) - set(names))
    if unknown:
        raise InputError(f"{folder} has no task {unknown[0]!r}. It has: {', '.join(names)}.")
    settings = _settings(folder / SETTINGS_FILE, names)
    return tuple(_task(name, found, settings) for name in names if not task_names or name in task_names)


def _parts(folder: Path, part: str) -> dict[str, Path]:
    """The files of a folder that are called NAME.part.*, by name."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        stem, _, _ = strip_compression_suffix(path.name)[0].rpartition(".")
        name, _, last = stem.rpartition(".")
        if path.is_file() and name and last == part:
            if name in found:
                raise InputError(f"{folder} has two files for {name}.{part}: {found[name].name} and {path.name}.")
            found[name] = path
    return found


def _settings(path: Path, names: Sequence[str]) -> Mapping[str, Mapping[str, object]]:
    if not path.is_file():
        return {}
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    for name, options in settings.items():
        if name != "all" and name not in names:
            raise InputError(f"{path}: there is no task {name!r} in the folder. There are: {', '.join(names)}.")
        for option in options if isinstance(options, dict) else [str(options)]:
            if option not in _OPTIONS | {"metric"}:
                known = ", ".join(sorted(_OPTIONS | {"metric"}))
                raise InputError(f"{path}: [{name}] has an unknown option {option!r}. Known are: {known}.")
    return settings


def _task(
    name: str, found: Mapping[str, Mapping[str, Path]], settings: Mapping[str, Mapping[str, object]]
) -> SuiteTask:
    options = {key: str(value) for key, value in {**settings.get("all", {}), **settings.get(name, {})}.items()}
    metric = options.pop("metric", "")
    tests = tuple(found["test"][one] for one in (name,) if one in found["test"])
    return SuiteTask(name, found["train"][name], found["dev"][name], tests, options, metric)


def _to_args(name: str, value: str) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    if name in _SWITCHES:
        return [option] if value == "True" else []
    return [option, value]
