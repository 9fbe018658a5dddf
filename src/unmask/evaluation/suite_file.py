"""The folder of a suite: which tasks it holds, and what is said about each.

What arrives: a folder. What leaves: its tasks.
What never happens here: reading a task. Whether its rows make sense is seen when it is tuned.

A task is a pair of files, `NAME.train.*` and `NAME.dev.*`; what `NAME.test.*` asks is answered too. A file `suite.toml`
in the folder may say more: under `[NAME]` the options of `unmask finetune` (`task_type`, `epochs`, `lr`, `max_length` ...), and
`metric`, the score to compare by; under `[all]` what holds for every task.
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
_OPTIONS = (
    frozenset(
        {"task_type", "text_columns", "label_column", "epochs", "lr", "batch_size", "max_length", "pooling", "method"}
    )
    | _SWITCHES
)


@dataclass(frozen=True, slots=True)
class SuiteTask:
    """One task of a suite."""

    name: str
    train: Path
    dev: Path
    tests: tuple[Path, ...] = ()
    """Files to answer without knowing the truth; none or one."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What `unmask finetune` is told beyond the files."""
    metric: str = ""
    """The score to compare by; nothing means the first that the task has."""

    def option_args(self) -> list[str]:
        """The options as they are typed."""
        return [word for name, value in self.options.items() for word in _to_args(name, value)]


def read_suite(folder: Path, task_names: Sequence[str] = ()) -> tuple[SuiteTask, ...]:
    """The tasks of a folder, by name; `only` some of them."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder. A suite is a folder of NAME.train.* and NAME.dev.* files.")
    found = {part: _parts(folder, part) for part in ("train", "dev", "test")}
    names = sorted(found["train"].keys() | found["dev"].keys())
    for name in names:
        for part, other in (("train", "dev"), ("dev", "train")):
            if name not in found[part]:
                raise InputError(f"{found[other][name]} has no {name}.{part}.* beside it. A task needs both files.")
    if not names:
        raise InputError(f"{folder} holds no task: none of its files are called NAME.train.* and NAME.dev.*.")
    unknown = sorted(set(task_names) - set(names))
    if unknown:
        raise InputError(f"{folder} has no task {unknown[0]!r}. It has: {', '.join(names)}.")
    said = _settings(folder / SETTINGS_FILE, names)
    return tuple(_task(name, found, said) for name in names if not task_names or name in task_names)


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
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from error
    for name, options in said.items():
        if name != "all" and name not in names:
            raise InputError(f"{path}: there is no task {name!r} in the folder. There are: {', '.join(names)}.")
        for option in options if isinstance(options, dict) else [str(options)]:
            if option not in _OPTIONS | {"metric"}:
                known = ", ".join(sorted(_OPTIONS | {"metric"}))
                raise InputError(f"{path}: [{name}] has an option {option!r} that nobody knows. Known are: {known}.")
    return said


def _task(name: str, found: Mapping[str, Mapping[str, Path]], said: Mapping[str, Mapping[str, object]]) -> SuiteTask:
    options = {key: str(value) for key, value in {**said.get("all", {}), **said.get(name, {})}.items()}
    metric = options.pop("metric", "")
    tests = tuple(found["test"][one] for one in (name,) if one in found["test"])
    return SuiteTask(name, found["train"][name], found["dev"][name], tests, options, metric)


def _to_args(name: str, value: str) -> list[str]:
    if name in _SWITCHES:
        return [f"--{name.replace('_', '-')}"] if value == "True" else []
    return [f"--{name.replace('_', '-')}", value]
