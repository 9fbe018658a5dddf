"""The Hugging Face class of a fine-tuned model, and the model in the layout of that class.

What no class can express (adapters, scalar mixes, CRFs, generation) is refused, with an alternative that can be
exported.
"""

from __future__ import annotations

import math
from copy import deepcopy

import torch
from torch import nn

from unmask.config.model_type import ModelType
from unmask.core.errors import InputError
from unmask.finetuning.artifact import FineTunedNetwork
from unmask.finetuning.methods.adapter import Adapter
from unmask.finetuning.methods.frozen import ScalarMixing
from unmask.finetuning.methods.lora import Lora, merge_updates
from unmask.finetuning.tasks.classification import ClassificationTask
from unmask.finetuning.tasks.multilabel import MultiLabelTask
from unmask.finetuning.tasks.multiple_choice import MultipleChoiceTask
from unmask.finetuning.tasks.protocol import TaskDefinition
from unmask.finetuning.tasks.ranking import RankingTask
from unmask.finetuning.tasks.regression import RegressionTask
from unmask.finetuning.tasks.san_pair import SANPairTask
from unmask.finetuning.tasks.span_qa import SpanQATask
from unmask.finetuning.tasks.tagging import TaggingTask
from unmask.interop.hf.config_json import TaskConfig
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.nets.layers.heads import PoolerClassifier
from unmask.nets.model import EncoderWithHeads
from unmask.objectives.heads.common import pooler_of
from unmask.train.multi_head_model import MultiHeadModel

_NOTE_MULTI_LABEL = "Labels are independent: those with a probability of at least one half are predicted."
_NOTE_RANKING = (
    "This is ranking: one number for a query and a candidate, without bounds. It has no meaning by itself; of the "
    "candidates of one query, the one with the highest number comes first."
)
_NOTE_FIRST_PIECE = "The tag of a word is the tag of its first piece."
_NOTE_CONSTRAINED_TAGS = (
    "unmask decodes with valid tag transitions only. transformers takes the best tag of each word, so a few "
    "predictions may differ; the logits are the same."
)
_NOTE_PASSAGES = (
    "A row is the question, then the passage. unmask reads a passage that is longer than a row through sliding "
    "windows, and takes the best answer of all of them."
)
_NOTE_CHOICES = "Each choice is a row of its own, and a softmax over the rows of a question compares them."


def architecture_for(
    tuned: FineTunedNetwork, model_type: ModelType = ModelType.BERT
) -> tuple[Architecture, TaskConfig]:
    """The class of a fine-tuned model, and its task configuration."""
    purpose, task = _hf_task(tuned)
    return Architecture(model_type, purpose), task


def _hf_task(tuned: FineTunedNetwork) -> tuple[HFTask, TaskConfig]:
    match tuned.task:
        case ClassificationTask(labels=labels):
            return HFTask.CLASSIFIER, TaskConfig(labels)
        case MultiLabelTask(labels=labels):
            return HFTask.CLASSIFIER, TaskConfig(labels, is_multi_label=True, notes=(_NOTE_MULTI_LABEL,))
        case RegressionTask():
            return HFTask.CLASSIFIER, TaskConfig()
        case RankingTask():
            return HFTask.CLASSIFIER, TaskConfig(notes=(_NOTE_RANKING,))
        case TaggingTask(labels=labels, crf=False, constrained=constrained):
            return HFTask.TOKEN_CLASSIFICATION, TaskConfig(
                labels, notes=(_NOTE_FIRST_PIECE, *([_NOTE_CONSTRAINED_TAGS] if constrained else []))
            )
        case SpanQATask(max_answer_tokens=longest, allow_no_answer=may, threshold=threshold):
            border = threshold if may else math.inf
            return HFTask.QUESTION_ANSWERING, TaskConfig(
                max_answer_tokens=longest, threshold=border, notes=(_NOTE_PASSAGES,)
            )
        case MultipleChoiceTask():
            return HFTask.MULTIPLE_CHOICE, TaskConfig(notes=(_NOTE_CHOICES,))
    raise _unsupported_error(*_explain_unsupported(tuned.task))


def model_for_export(tuned: FineTunedNetwork) -> EncoderWithHeads:
    """The encoder with the head of the task, in the units of the task file."""
    learner = _merge_adapters(tuned)
    head = learner.heads[tuned.task.objective.name]
    model = EncoderWithHeads(
        learner.network.config, learner.vocab_size, learner.max_positions, has_lm_head=False, has_row_head=False
    )
    model.network = learner.network
    if isinstance(tuned.task, TaggingTask | SpanQATask):
        assert isinstance(head.classify, nn.Linear), "tags and spans are scored by one linear layer"
        model.token_classifier = head.classify
    else:
        model.row_head = _in_units(pooler_of(head), tuned.task)
    return model.eval()


def _merge_adapters(tuned: FineTunedNetwork) -> MultiHeadModel:
    """The model in plain layout: LoRA updates are merged."""
    match tuned.method:
        case Adapter():
            raise _unsupported_error(
                "has adapters inside its blocks", "Fine-tune with --method lora, which can be exported, or full"
            )
        case ScalarMixing():
            raise _unsupported_error(
                "reads a scalar mix of all layers", "Fine-tune with --method frozen, which can be exported, or full"
            )
        case Lora():
            learner = deepcopy(tuned.learner)
            merge_updates(learner)
            return learner
    return tuned.learner


@torch.no_grad()
def _in_units(head: PoolerClassifier, output: TaskDefinition) -> PoolerClassifier:
    """A row head whose last layer predicts in the units of the task file."""
    if not isinstance(output, RegressionTask):
        return head
    row = deepcopy(head)
    row.classify.weight.mul_(output.std)
    row.classify.bias.mul_(output.std).add_(output.mean)
    return row


def _explain_unsupported(output: TaskDefinition) -> tuple[str, str]:
    """The feature of a task that no class supports, and the alternative."""
    match output:
        case TaggingTask():
            return "decodes tags with a CRF", "Fine-tune without --crf"
        case SANPairTask():
            return "has the answer module of SAN", "Fine-tune with --task-type classification"
    return f"was fine-tuned for {output.task_type}", "No model for this task can be exported"


def _unsupported_error(what: str, instead: str) -> InputError:
    return InputError(
        f"This model cannot be exported to transformers: it {what}, which none of its classes supports. {instead}. To "
        "use this model as it is: unmask predict"
    )
