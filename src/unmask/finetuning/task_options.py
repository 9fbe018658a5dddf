"""Options of a task beyond its files: task type, columns and readout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from unmask.config.inference import GenerationConfig
from unmask.config.pooling import Pooling
from unmask.core.errors import InputError
from unmask.finetuning.data.columns import NO_COLUMN_CHOICE, ColumnChoice
from unmask.finetuning.tasks.protocol import TaskType


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """Options with their defaults; without a task type it is inferred from the file."""

    task_type: TaskType | None = None
    columns: ColumnChoice = NO_COLUMN_CHOICE
    max_answer_tokens: int | None = None
    """The longest answer of extractive QA; by default from the training file."""
    pooling: Pooling = Pooling.FIRST
    """Which token states represent a row, for predictions about whole rows."""
    max_candidates: int = 16
    """The largest group in training (ranking)."""
    use_sigmoid: bool = False
    """Whether scores pass through a sigmoid before the softmax, as in MT-DNN's paper (ranking)."""
    crf: bool = False
    """Whether a conditional random field scores the tags of a sentence together (tagging)."""
    constrained_tags: bool = False
    """Whether decoding allows valid transitions only (tagging)."""
    generation: GenerationConfig = GenerationConfig()
    """Decoder and beam search (generation)."""


DEFAULT_TASK_OPTIONS = TaskOptions()
AUTO = "auto"
"""The task type that is inferred from the file."""
_ROWS = (TaskType.CLASSIFICATION, TaskType.MULTILABEL, TaskType.REGRESSION, TaskType.MULTIPLE_CHOICE, TaskType.RANKING)
_OPTION_TASK_TYPES: Mapping[str, tuple[TaskType, ...]] = MappingProxyType(
    {
        "--pooling": _ROWS,
        "--crf": (TaskType.TAGGING,),
        "--constrained-tags": (TaskType.TAGGING,),
        "--max-answer-tokens": (TaskType.SPAN_QA,),
        "--max-candidates": (TaskType.RANKING,),
        "--decoder": (TaskType.GENERATION,),
        "--num-beams": (TaskType.GENERATION,),
        "--max-new-tokens": (TaskType.GENERATION,),
    }
)
"""The task types that an option applies to."""


def parse_task_type(word: str) -> TaskType | None:
    """The task type of a name; `None` if it is inferred from the file."""
    if word not in ("", AUTO, *TaskType):
        raise InputError(f"There is no task type '{word}'. Choose one of: {AUTO}, {', '.join(TaskType)}.")
    return None if word in ("", AUTO) else TaskType(word)


def check_options(task_type: TaskType, given: Mapping[str, bool]) -> None:
    """Refuse an option that was given and has no effect on this task type."""
    for option, was_given in given.items():
        if was_given and task_type not in _OPTION_TASK_TYPES[option]:
            raise InputError(
                f"{option} has no effect with --task-type {task_type}; it is for "
                f"{' and '.join(_OPTION_TASK_TYPES[option])}. Leave it out."
            )
