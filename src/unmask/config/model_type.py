"""Model types: the families of classes in `transformers` under whose names a network is exported."""

from __future__ import annotations

from enum import StrEnum


class ModelType(StrEnum):
    """A family of classes. The value is the `model_type` of `config.json`."""

    BERT = "bert"
    ROBERTA = "roberta"
    ALBERT = "albert"
    ERNIE = "ernie"
    ELECTRA = "electra"
