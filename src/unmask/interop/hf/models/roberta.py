"""RoBERTa in the names of `transformers` (Liu et al., 2019).

Its head for tokens has another name and always bends with exact GELU; a tuned classifier brings its own pooler along;
nothing about rows is pre-trained. Positions are numbered from the id of padding on: the first is one more than it.

What arrives: nothing. What leaves: the grammar.
What never happens here: what all dialects do alike; see `weight_names.py` and `settings.py`.
"""

from __future__ import annotations

from unmask.config.model_type import ModelType
from unmask.config.network import Activation
from unmask.interop.hf.architecture import HFTask
from unmask.interop.hf.layer_names import PerLayer
from unmask.interop.hf.model_map import LMHeadNames, ModelMap, Parts
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
