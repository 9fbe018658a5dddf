"""Fine-tuning: task files, tasks, methods, and the artifact that it writes."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unmask.finetuning import methods as methods
    from unmask.finetuning import tasks as tasks


def __getattr__(name: str) -> object:
    if name not in ("methods", "tasks"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"unmask.finetuning.{name}")
