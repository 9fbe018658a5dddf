"""What a user says about a task beyond its files: what is asked, which fields hold it, how it is read out.

What arrives: words of the command line. What leaves: a `Wish`.
What never happens here: reading a file.
"""

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
    """Everything has a usual value; a kind that is not given is read from the file."""

    task_type: TaskType | None = None
    columns: ColumnChoice = NO_COLUMN_CHOICE
    max_answer_tokens: int | None = None
    """The most tokens of an answer that is copied from a passage; if not given, the training file decides."""
    pooling: Pooling = Pooling.FIRST
    """Which tokens of a row speak for it, where one thing is said about a whole row."""
    max_candidates: int = 16
    """The most candidates of a group that is learned from at once (ranking)."""
    use_sigmoid: bool = False
    """Whether scores go through a sigmoid before candidates are compared, as in MT-DNN's paper (ranking)."""
    crf: bool = False
    """Whether the tags of a sentence are chosen together, by a conditional random field."""
    constrained_tags: bool = False
    """Whether only tags that may follow each other are said, where each is chosen by itself."""

    generation: GenerationConfig = GenerationConfig()
    """How texts are written."""


DEFAULT_TASK_OPTIONS = TaskOptions()
AUTO = "auto"
"""What a user writes where the file shall decide."""
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
"""Which kinds of questions an option says something to."""


def parse_task_type(word: str) -> TaskType | None:
    """The kind that a user wrote; nothing where the file decides."""
    if word not in ("", AUTO, *TaskType):
        raise InputError(f"There is no task type '{word}'. Choose one of: {AUTO}, {', '.join(TaskType)}.")
    return None if word in ("", AUTO) else TaskType(word)


def check_options(task_type: TaskType, given: Mapping[str, bool]) -> None:
    """Refuse an option that was given and says nothing to this kind of question."""
    for option, was_given in given.items():
        if was_given and task_type not in _OPTION_TASK_TYPES[option]:
            raise InputError(
                f"{option} has no effect with --task-type {task_type}; it is for {' and '.join(_OPTION_TASK_TYPES[option])}."
            )
