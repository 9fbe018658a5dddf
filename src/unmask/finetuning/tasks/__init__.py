"""Fine-tuning tasks: one class for each task type, all with the same protocol.

The classes are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unmask.finetuning.tasks.classification import ClassificationTask as ClassificationTask
    from unmask.finetuning.tasks.generation import GenerationTask as GenerationTask
    from unmask.finetuning.tasks.multilabel import MultiLabelTask as MultiLabelTask
    from unmask.finetuning.tasks.multiple_choice import MultipleChoiceTask as MultipleChoiceTask
    from unmask.finetuning.tasks.protocol import TaskType as TaskType
    from unmask.finetuning.tasks.ranking import RankingTask as RankingTask
    from unmask.finetuning.tasks.regression import RegressionTask as RegressionTask
    from unmask.finetuning.tasks.san_pair import SANPairTask as SANPairTask
    from unmask.finetuning.tasks.span_qa import SpanQATask as SpanQATask
    from unmask.finetuning.tasks.tagging import TaggingTask as TaggingTask

_HOMES = {
    "ClassificationTask": "unmask.finetuning.tasks.classification",
    "GenerationTask": "unmask.finetuning.tasks.generation",
    "MultiLabelTask": "unmask.finetuning.tasks.multilabel",
    "MultipleChoiceTask": "unmask.finetuning.tasks.multiple_choice",
    "RankingTask": "unmask.finetuning.tasks.ranking",
    "RegressionTask": "unmask.finetuning.tasks.regression",
    "SANPairTask": "unmask.finetuning.tasks.san_pair",
    "SpanQATask": "unmask.finetuning.tasks.span_qa",
    "TaggingTask": "unmask.finetuning.tasks.tagging",
    "TaskType": "unmask.finetuning.tasks.protocol",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
