"""ELECTRA in the names of `transformers` (Clark et al., 2020).

Two networks: the discriminator is `ElectraForPreTraining`, the generator `ElectraForMaskedLM`. There is no pooler; a
tuned class brings its own, and it bends with GELU. The generator's head for tokens always bends with exact GELU.

What arrives: nothing. What leaves: the grammar.
What never happens here: what all dialects do alike; see `naming.py` and `settings.py`.
"""

from __future__ import annotations

from unmask.dialect import Dialect
from unmask.export.architecture import Purpose
from unmask.export.bert import FIXED
from unmask.export.grammar import Grammar, Parts, Projection, TokenNames
from unmask.export.stack import Single
from unmask.nets.trunk import Activation

_REPLACED = {
    "replaced.dense": "discriminator_predictions.dense",
    "replaced.classify": "discriminator_predictions.dense_prediction",
}

ELECTRA = Grammar(
    dialect=Dialect.ELECTRA,
    classes={
        Purpose.DISCRIMINATOR: Parts(layers=_REPLACED),
        Purpose.MASKED_LM: Parts(tokens=True),
        Purpose.ENCODER: Parts(),
        Purpose.CLASSIFIER: Parts(layers={"row.pool": "classifier.dense", "row.classify": "classifier.out_proj"}),
        Purpose.CHOOSER: Parts(layers={"row.pool": "sequence_summary.summary", "row.classify": "classifier"}),
        Purpose.TAGGER: Parts(layers={"each": "classifier"}),
        Purpose.READER: Parts(layers={"each": "qa_outputs"}),
    },
    tokens=TokenNames(
        dense="generator_predictions.dense",
        norm="generator_predictions.LayerNorm",
        bias=("generator_lm_head.bias",),
        output=("generator_lm_head.weight",),
    ),
    stack=Single(),
    projection=Projection("embeddings_project"),
    pooled=Activation.GELU,
    token_bend=(Activation.GELU,),
    fixed={**FIXED, "summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
    usual={"embedding_size": 128},
)
