"""The model map of RoBERTa (Liu et al., 2019).

Its LM head has other names and always has exact GELU. The classifier has a pooler of its own; no row head is
pre-trained. Position ids start one after the padding id.
"""

from __future__ import annotations

from unmask.config.model_type import ModelType
from unmask.config.network import Activation
from unmask.interop.hf.layer_names import PerLayer
from unmask.interop.hf.model_map import HFTask, LMHeadNames, ModelMap, Parts
from unmask.interop.hf.models.bert import FIXED_CONFIG

_POOL = {"row_head.pool": "roberta.pooler.dense"}

ROBERTA = ModelMap(
    model_type=ModelType.ROBERTA,
    heads_by_task={
        HFTask.MASKED_LM: Parts(has_lm_head=True),
        HFTask.ENCODER: Parts(layers=_POOL),
        HFTask.CLASSIFIER: Parts(
            layers={"row_head.pool": "classifier.dense", "row_head.classify": "classifier.out_proj"}
        ),
        HFTask.MULTIPLE_CHOICE: Parts(layers={**_POOL, "row_head.classify": "classifier"}),
        HFTask.TOKEN_CLASSIFICATION: Parts(layers={"token_classifier": "classifier"}),
        HFTask.QUESTION_ANSWERING: Parts(layers={"token_classifier": "qa_outputs"}),
    },
    lm_head_names=LMHeadNames(
        dense="lm_head.dense",
        norm="lm_head.layer_norm",
        bias=("lm_head.bias", "lm_head.decoder.bias"),
        output=("lm_head.decoder.weight",),
    ),
    layer_names=PerLayer(),
    positions_after_pad=True,
    lm_head_activations=(Activation.GELU,),
    fixed_config=FIXED_CONFIG,
    default_config={"pad_token_id": 1},
)
