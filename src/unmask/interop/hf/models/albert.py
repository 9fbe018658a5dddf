"""The model map of ALBERT (Lan et al., 2019).

Its layers form groups with shared weights. Its embeddings are always projected; at equal widths the projection must be
the identity. The row head predicts the order of two segments: 0 in order, 1 swapped.
"""

from __future__ import annotations

from unmask.config.model_type import ModelType
from unmask.interop.hf.layer_names import SharedGroups
from unmask.interop.hf.model_map import HFTask, LMHeadNames, ModelMap, Parts, Projection
from unmask.interop.hf.models.bert import FIXED_CONFIG

_POOL = {"row_head.pool": "albert.pooler"}
_CLASSIFIED = Parts(layers={**_POOL, "row_head.classify": "classifier"})

ALBERT = ModelMap(
    model_type=ModelType.ALBERT,
    heads_by_task={
        HFTask.PRE_TRAINING: Parts(
            has_lm_head=True, layers={**_POOL, "row_head.classify": "sop_classifier.classifier"}
        ),
        HFTask.MASKED_LM: Parts(has_lm_head=True),
        HFTask.ENCODER: Parts(layers=_POOL),
        HFTask.CLASSIFIER: _CLASSIFIED,
        HFTask.MULTIPLE_CHOICE: _CLASSIFIED,
        HFTask.TOKEN_CLASSIFICATION: Parts(layers={"token_classifier": "classifier"}),
        HFTask.QUESTION_ANSWERING: Parts(layers={"token_classifier": "qa_outputs"}),
    },
    lm_head_names=LMHeadNames(
        dense="predictions.dense",
        norm="predictions.LayerNorm",
        bias=("predictions.bias", "predictions.decoder.bias"),
        output=("predictions.decoder.weight",),
    ),
    layer_names=SharedGroups(),
    projection=Projection("encoder.embedding_hidden_mapping_in", always=True),
    fixed_config=FIXED_CONFIG,
    default_config={
        "embedding_size": 128,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    row_logits="sop_logits",
)
