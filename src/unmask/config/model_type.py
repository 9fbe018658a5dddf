"""Whose names a network is written in: the families of classes that `transformers` has.

What arrives: nothing. What leaves: the names of the dialects. What never happens here: weights; see `export/`.
"""

from __future__ import annotations

from enum import StrEnum


class ModelType(StrEnum):
    """A family of classes. Its value is what `config.json` calls the model type."""

    BERT = "bert"
    ROBERTA = "roberta"
    ALBERT = "albert"
    ERNIE = "ernie"
    ELECTRA = "electra"
