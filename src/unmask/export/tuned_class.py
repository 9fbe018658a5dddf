"""Which class gives the answers of a tuned network, and the network in the shape of that class.

What arrives: a tuned network. What leaves: a class with its task, and a `Model`.
What never happens here: a part that is left behind in silence. What none of the classes can express is refused, with
the way to tune that can be exported.
"""

from __future__ import annotations

import math
from copy import deepcopy

import torch
from torch import nn

from unmask.dialect import Dialect
from unmask.errors import InputError
from unmask.export.architecture import Architecture, Purpose
from unmask.export.task import Task
from unmask.nets.heads import RowHead
from unmask.nets.model import Model
from unmask.objectives.heads import row_head_of
from unmask.train.learner import Learner
from unmask.tune.output import Output
from unmask.tune.outputs.choose import Choose
from unmask.tune.outputs.classify import Classify
from unmask.tune.outputs.labels import Labels
from unmask.tune.outputs.pair import PairClass
from unmask.tune.outputs.rank import Rank
from unmask.tune.outputs.regress import Regress
from unmask.tune.outputs.span import Span
from unmask.tune.outputs.tag import Tag
from unmask.tune.policies.adapter import Adapter
from unmask.tune.policies.layers import Layers
from unmask.tune.policies.lora import Lora, merge_updates
from unmask.tune.saved import Tuned

_SEVERAL = "Each label is said by itself: where its probability is at least one half."
_RANKED = (
    "This is ranking: one number for a query and a candidate, without bounds. It has no meaning by itself; of the "
    "candidates of one query, the one with the highest number comes first."
)
_FIRST_PIECE = "The tag of a word is the tag of its first piece."
_LEGAL = (
    "In unmask, this network says only tags that may follow each other. transformers takes the best tag of each word, "
    "so that a few answers may differ; the scores of the tags are the same."
)
_PASSAGES = (
    "A row is the question, then the passage. unmask reads a passage that is longer than a row through windows that "
    "overlap, and takes the best answer of all of them."
)
_CHOICES = "Each choice is a row of its own, and a softmax over the rows of a question compares them."


def class_of(tuned: Tuned, dialect: Dialect = Dialect.BERT) -> tuple[Architecture, Task]:
    """The class that answers as a tuned network does, and what must be known to read the answers."""
    purpose, task = _purpose(tuned)
    return Architecture(dialect, purpose), task


def _purpose(tuned: Tuned) -> tuple[Purpose, Task]:
    match tuned.output:
        case Classify(labels=labels):
            return Purpose.CLASSIFIER, Task(labels)
        case Labels(labels=labels):
            return Purpose.CLASSIFIER, Task(labels, several=True, notes=(_SEVERAL,))
        case Regress():
            return Purpose.CLASSIFIER, Task()
        case Rank():
            return Purpose.CLASSIFIER, Task(notes=(_RANKED,))
        case Tag(labels=labels, crf=False, legal=legal):
            return Purpose.TAGGER, Task(labels, notes=(_FIRST_PIECE, *([_LEGAL] if legal else [])))
        case Span(longest=longest, may_be_silent=may, threshold=threshold):
            border = threshold if may else math.inf
            return Purpose.READER, Task(longest=longest, threshold=border, notes=(_PASSAGES,))
        case Choose():
            return Purpose.CHOOSER, Task(notes=(_CHOICES,))
    raise _refused(*_beyond(tuned.output))


def model_of_tuned(tuned: Tuned) -> Model:
    """The trunk with the head that answers the task, in the units of the task file."""
    learner = _plain(tuned)
    head = learner.heads[tuned.output.objective.name]
    model = Model(learner.trunk.trunk, learner.vocabulary, learner.positions, tokens=False, row=False)
    model.trunk = learner.trunk
    if isinstance(tuned.output, Tag | Span):
        assert isinstance(head.classify, nn.Linear), "tags and spans are scored by one linear layer"
        model.each = head.classify
    else:
        model.row = _in_units(row_head_of(head), tuned.output)
    return model.eval()


def _plain(tuned: Tuned) -> Learner:
    """The learner in its plain shape: updates beside its layers are added to them."""
    match tuned.policy:
        case Adapter():
            raise _refused("has adapters inside its blocks", "Tune with --policy lora, which can be exported, or full")
        case Layers():
            raise _refused("reads a mixture of all layers", "Tune with --policy frozen, which can be exported, or full")
        case Lora():
            learner = deepcopy(tuned.learner)
            merge_updates(learner)
            return learner
    return tuned.learner


@torch.no_grad()
def _in_units(head: RowHead, output: Output) -> RowHead:
    """A head for rows. The scale in which numbers are learned goes into its last layer."""
    if not isinstance(output, Regress):
        return head
    row = deepcopy(head)
    row.classify.weight.mul_(output.spread)
    row.classify.bias.mul_(output.spread).add_(output.mean)
    return row


def _beyond(output: Output) -> tuple[str, str]:
    """What an output does that no class of theirs does, and what to do about it."""
    match output:
        case Tag():
            return "chooses the tags of a sentence together, by a CRF", "Tune without --crf"
        case PairClass():
            return "compares pairs word by word, by an answer module of its own", "Tune with --kind classify"
    return f"was tuned to {output.kind}", "No other way of tuning for this can be exported"


def _refused(what: str, instead: str) -> InputError:
    return InputError(
        f"This network cannot be written for transformers: it {what}, and no class of theirs does. {instead}. To "
        "answer with this network as it is, use: unmask predict"
    )
