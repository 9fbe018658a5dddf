"""Model types: the families of classes in `transformers` under whose names a network is exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class ModelType(StrEnum):
    """A family of classes. The value is the `model_type` of `config.json`."""

    BERT = "bert"
    ROBERTA = "roberta"
    ALBERT = "albert"
    ERNIE = "ernie"
    ELECTRA = "electra"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Facts about a trained model, for its model card. Empty fields are omitted."""

    name: str = ""
    recipe: str = ""
    """The recipe and the number of steps."""
    paper: str = ""
    fingerprint: str = ""
    """Of the recipe."""
    corpus: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Counts of the training corpus, such as documents and tokens."""
