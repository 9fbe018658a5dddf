"""BERT in the names of `transformers` (Devlin et al., 2018).

What arrives: nothing. What leaves: the grammar.
What never happens here: what all dialects do alike; see `naming.py` and `settings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from unmask.dialect import Dialect
from unmask.export.architecture import Purpose
from unmask.export.grammar import Grammar, Parts, TokenNames
from unmask.export.stack import Single

TOKENS = TokenNames(
    dense="cls.predictions.transform.dense",
    norm="cls.predictions.transform.LayerNorm",
    bias=("cls.predictions.bias", "cls.predictions.decoder.bias"),
    output=("cls.predictions.decoder.weight",),
)
FIXED = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}


def classes(dialect: Dialect) -> Mapping[Purpose, Parts]:
    """What stands on the trunk in each class."""
    pool = {"row.pool": f"{dialect.value}.pooler.dense"}
    classified = Parts(layers={**pool, "row.classify": "classifier"})
    return {
        Purpose.PRE_TRAINING: Parts(tokens=True, layers={**pool, "row.classify": "cls.seq_relationship"}),
        Purpose.MASKED_LM: Parts(tokens=True),
        Purpose.ENCODER: Parts(layers=pool),
        Purpose.CLASSIFIER: classified,
        Purpose.CHOOSER: classified,
        Purpose.TAGGER: Parts(layers={"each": "classifier"}),
        Purpose.READER: Parts(layers={"each": "qa_outputs"}),
    }


BERT = Grammar(dialect=Dialect.BERT, classes=classes(Dialect.BERT), tokens=TOKENS, stack=Single(), fixed=FIXED)
