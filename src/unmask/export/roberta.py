"""RoBERTa in the names of `transformers` (Liu et al., 2019).

Its head for tokens has another name and always bends with exact GELU; a tuned classifier brings its own pooler along;
nothing about rows is pre-trained. Positions are numbered from the id of padding on: the first is one more than it.

What arrives: nothing. What leaves: the grammar.
What never happens here: what all dialects do alike; see `naming.py` and `settings.py`.
"""

from __future__ import annotations

from unmask.dialect import Dialect
from unmask.export.architecture import Purpose
from unmask.export.bert import FIXED
from unmask.export.grammar import Grammar, Parts, TokenNames
from unmask.export.stack import Single
from unmask.nets.trunk import Activation

_POOL = {"row.pool": "roberta.pooler.dense"}

ROBERTA = Grammar(
    dialect=Dialect.ROBERTA,
    classes={
        Purpose.MASKED_LM: Parts(tokens=True),
        Purpose.ENCODER: Parts(layers=_POOL),
        Purpose.CLASSIFIER: Parts(layers={"row.pool": "classifier.dense", "row.classify": "classifier.out_proj"}),
        Purpose.CHOOSER: Parts(layers={**_POOL, "row.classify": "classifier"}),
        Purpose.TAGGER: Parts(layers={"each": "classifier"}),
        Purpose.READER: Parts(layers={"each": "qa_outputs"}),
    },
    tokens=TokenNames(
        dense="lm_head.dense",
        norm="lm_head.layer_norm",
        bias=("lm_head.bias", "lm_head.decoder.bias"),
        output=("lm_head.decoder.weight",),
    ),
    stack=Single(),
    after_pad=True,
    token_bend=(Activation.GELU,),
    fixed=FIXED,
    usual={"pad_token_id": 1},
)
