"""The classes that a folder can be written for: a dialect of `transformers`, and what the network is for.

What arrives: the two words. What leaves: the name of the class.
What never happens here: which classes a dialect has, or what they hold; see `lookup.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unmask.config.model_type import ModelType


class HFTask(StrEnum):
    """What an exported network is for."""

    PRE_TRAINING = "pretraining"
    """With the head for tokens and the head for rows."""
    MASKED_LM = "masked-lm"
    """With the head for tokens. Of ELECTRA, this is the generator."""
    DISCRIMINATOR = "discriminator"
    """With the head that tells replaced tokens from original ones."""
    ENCODER = "encoder"
    """With the pooler of the head for rows, and without its classes."""
    CLASSIFIER = "classifier"
    """With a head for rows that was tuned for a task: its classes are labels, or one number."""
    TOKEN_CLASSIFICATION = "tagger"
    """With a label for each token, and without a pooler."""
    QUESTION_ANSWERING = "reader"
    """With two scores for each token: as the first of an answer, and as the last. Without a pooler."""
    MULTIPLE_CHOICE = "chooser"
    """With one number for each row; the rows of a question are its choices."""


DOWNSTREAM_TASKS = frozenset(
    {HFTask.CLASSIFIER, HFTask.TOKEN_CLASSIFICATION, HFTask.QUESTION_ANSWERING, HFTask.MULTIPLE_CHOICE}
)
"""What a network becomes when it is tuned; the others are pre-trained."""
_ENDS = {
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
        """What the class is called."""
        return f"{class_prefix(self.model_type)}{_ENDS[self.task]}"

    @property
    def article(self) -> str:
        """What stands before the name in a sentence."""
        return "an" if self.name[0] in "AE" else "a"


def class_prefix(model_type: ModelType) -> str:
    """What the names of all its classes begin with."""
    return model_type.value.capitalize()
