"""ALBERT in the names of `transformers` (Lan et al., 2019).

Its layers come in groups that share weights; its embeddings are always projected, and where they are as wide as the
trunk the projection leaves them as they are. The head for rows says the order of two segments: 0 in order, 1 swapped.

What arrives: nothing. What leaves: the grammar.
What never happens here: what all dialects do alike; see `naming.py` and `settings.py`.
"""

from __future__ import annotations

from unmask.dialect import Dialect
from unmask.export.architecture import Purpose
from unmask.export.bert import FIXED
from unmask.export.grammar import Grammar, Parts, Projection, TokenNames
from unmask.export.stack import Groups

_POOL = {"row.pool": "albert.pooler"}
_CLASSIFIED = Parts(layers={**_POOL, "row.classify": "classifier"})

ALBERT = Grammar(
    dialect=Dialect.ALBERT,
    classes={
        Purpose.PRE_TRAINING: Parts(tokens=True, layers={**_POOL, "row.classify": "sop_classifier.classifier"}),
        Purpose.MASKED_LM: Parts(tokens=True),
        Purpose.ENCODER: Parts(layers=_POOL),
        Purpose.CLASSIFIER: _CLASSIFIED,
        Purpose.CHOOSER: _CLASSIFIED,
        Purpose.TAGGER: Parts(layers={"each": "classifier"}),
        Purpose.READER: Parts(layers={"each": "qa_outputs"}),
    },
    tokens=TokenNames(
        dense="predictions.dense",
        norm="predictions.LayerNorm",
        bias=("predictions.bias", "predictions.decoder.bias"),
        output=("predictions.decoder.weight",),
    ),
    stack=Groups(),
    projection=Projection("encoder.embedding_hidden_mapping_in", always=True),
    fixed=FIXED,
    usual={
        "embedding_size": 128,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    row_logits="sop_logits",
)
