"""How Hugging Face's classes differ between model types: tasks, class names, heads, weight names, fixed settings.

Each model type has a `ModelMap` in `models/`; `lookup.py` finds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from unmask.config.model_type import ModelType
from unmask.config.network import Activation, Norm, NormKind, Positions, TransformerConfig
from unmask.interop.hf.layer_names import LayerNames

ACTIVATION_NAMES = {Activation.GELU: "gelu", Activation.GELU_TANH: "gelu_new", Activation.RELU: "relu"}
"""The names of activations in `config.json`."""


class HFTask(StrEnum):
    """The purpose of an exported network; with the model type it determines the class of `transformers`."""

    PRE_TRAINING = "pretraining"
    """LM head and row head."""
    MASKED_LM = "masked-lm"
    """LM head. For ELECTRA, this is the generator."""
    DISCRIMINATOR = "discriminator"
    """The head for replaced-token detection."""
    ENCODER = "encoder"
    """No head but the pooler of the row head, without its classes."""
    CLASSIFIER = "classifier"
    """A fine-tuned row head: classes, or one number."""
    TOKEN_CLASSIFICATION = "tagger"
    """A label per token, without a pooler."""
    QUESTION_ANSWERING = "reader"
    """Start and end scores per token, without a pooler."""
    MULTIPLE_CHOICE = "chooser"
    """One score per row; the rows of a question are its choices."""


DOWNSTREAM_TASKS = frozenset(
    {HFTask.CLASSIFIER, HFTask.TOKEN_CLASSIFICATION, HFTask.QUESTION_ANSWERING, HFTask.MULTIPLE_CHOICE}
)
"""The tasks of fine-tuned models; the others are pre-trained."""
_CLASS_SUFFIX = {
    HFTask.PRE_TRAINING: "ForPreTraining",
    HFTask.MASKED_LM: "ForMaskedLM",
    HFTask.DISCRIMINATOR: "ForPreTraining",
    HFTask.ENCODER: "Model",
    HFTask.CLASSIFIER: "ForSequenceClassification",
    HFTask.TOKEN_CLASSIFICATION: "ForTokenClassification",
    HFTask.QUESTION_ANSWERING: "ForQuestionAnswering",
    HFTask.MULTIPLE_CHOICE: "ForMultipleChoice",
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """One class of `transformers`."""

    model_type: ModelType
    task: HFTask

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """The name of the class."""
        return f"{class_prefix(self.model_type)}{_CLASS_SUFFIX[self.task]}"

    @property
    def article(self) -> str:
        """The indefinite article for the name."""
        return "an" if self.name[0] in "AE" else "a"


def class_prefix(model_type: ModelType) -> str:
    """The common prefix of the class names of a model type."""
    return model_type.value.capitalize()


@dataclass(frozen=True, slots=True)
class Parts:
    """The heads of a class: whether it has an LM head, and its other layers by our name and theirs."""

    has_lm_head: bool = False
    layers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class LMHeadNames:
    """The names of the LM head's weights. A tied weight has several names; the first is written."""

    dense: str
    norm: str
    bias: tuple[str, ...]
    output: tuple[str, ...]
    """Further names of the token embedding, as output matrix."""


@dataclass(frozen=True, slots=True)
class Projection:
    """The projection from the embedding width to the hidden width."""

    layer: str = ""
    """Its name; empty if the model type has none."""
    always: bool = False
    """Whether it exists even if both widths are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMap:
    """Everything that is specific to one model type."""

    model_type: ModelType
    heads_by_task: Mapping[HFTask, Parts]
    """The heads of each of its classes."""
    lm_head_names: LMHeadNames
    layer_names: LayerNames
    projection: Projection = Projection()
    positions_after_pad: bool = False
    """Whether position ids start after the padding id (RoBERTa) instead of at 0."""
    pooler_activation: Activation = Activation.TANH
    lm_head_activations: tuple[Activation, ...] = ()
    """The activations that its LM head can have; empty: that of the layers."""
    fixed_config: Mapping[str, Any]
    """Settings with a required value."""
    default_config: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Defaults of settings that a file may omit, where they differ from BERT's."""
    row_logits: str = "seq_relationship_logits"
    """The output name of the pre-trained row head."""

    @property
    def prefix(self) -> str:
        """The prefix of encoder weights in classes with heads; a bare encoder has none."""
        return f"{self.model_type.value}."

    @property
    def name(self) -> str:
        """The name in messages."""
        return "BERT" if self.model_type is ModelType.BERT else class_prefix(self.model_type)

    def inexpressible(self, network: TransformerConfig, parts: Parts) -> list[str]:
        """The features of a network that this model type has no setting for, in a few words each."""
        first, activation = network.position_offset, network.activation
        has_other_lm_head = parts.has_lm_head and bool(self.lm_head_activations)
        features = {
            "pre-norm blocks": network.norm is not Norm.POST,
            "positions that are not learned": network.positions is not Positions.LEARNED,
            "a factorised embedding": network.token_width != network.width and not self.projection.layer,
            "task embeddings": network.num_tasks > 0,
            "RMSNorm": network.norm_kind is not NormKind.LAYER,
            "linear layers without a bias": not network.bias,
            "attention without a scale": not network.scale_attention,
            f"heads of width {network.head_width}": network.qkv_width != network.width,
            "no segment embedding": network.num_segments < 1,
            f"positions that begin with number {first}": (first > 0) is not self.positions_after_pad,
            f"{activation.value} activation": activation not in ACTIVATION_NAMES,
            f"a pooler with {network.pooler_activation.value}": network.pooler_activation is not self.pooler_activation,
            f"an LM head with {activation.value}": has_other_lm_head and activation not in self.lm_head_activations,
        }
        return [feature for feature, is_present in features.items() if is_present]
