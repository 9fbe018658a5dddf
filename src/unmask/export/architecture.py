"""The classes that a folder can be written for: a dialect of `transformers`, and what the network is for.

What arrives: the two words. What leaves: the name of the class.
What never happens here: which classes a dialect has, or what they hold; see `dialects.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unmask.dialect import Dialect


class Purpose(StrEnum):
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
    TAGGER = "tagger"
    """With a label for each token, and without a pooler."""
    READER = "reader"
    """With two scores for each token: as the first of an answer, and as the last. Without a pooler."""
    CHOOSER = "chooser"
    """With one number for each row; the rows of a question are its choices."""


FOR_A_TASK = frozenset({Purpose.CLASSIFIER, Purpose.TAGGER, Purpose.READER, Purpose.CHOOSER})
"""What a network becomes when it is tuned; the others are pre-trained."""
_ENDS = {
    Purpose.PRE_TRAINING: "ForPreTraining",
    Purpose.MASKED_LM: "ForMaskedLM",
    Purpose.DISCRIMINATOR: "ForPreTraining",
    Purpose.ENCODER: "Model",
    Purpose.CLASSIFIER: "ForSequenceClassification",
    Purpose.TAGGER: "ForTokenClassification",
    Purpose.READER: "ForQuestionAnswering",
    Purpose.CHOOSER: "ForMultipleChoice",
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """One class of `transformers`."""

    dialect: Dialect
    purpose: Purpose

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """What the class is called."""
        return f"{family(self.dialect)}{_ENDS[self.purpose]}"

    @property
    def article(self) -> str:
        """What stands before the name in a sentence."""
        return "an" if self.name[0] in "AE" else "a"


def family(dialect: Dialect) -> str:
    """What the names of all its classes begin with."""
    return dialect.value.capitalize()
