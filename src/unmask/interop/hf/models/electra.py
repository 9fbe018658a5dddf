"""The model map of ELECTRA (Clark et al., 2020).

The discriminator is `ElectraForPreTraining`, the generator `ElectraForMaskedLM`. There is no pre-trained pooler; the
classifier has one of its own, with GELU. The generator's LM head always has exact GELU.
"""

from __future__ import annotations

from unmask.config.model_type import ModelType
from unmask.config.network import Activation
from unmask.interop.hf.layer_names import PerLayer
from unmask.interop.hf.model_map import HFTask, LMHeadNames, ModelMap, Parts, Projection
from unmask.interop.hf.models.bert import FIXED_CONFIG

_DISCRIMINATOR = {
    "discriminator_head.dense": "discriminator_predictions.dense",
    "discriminator_head.classify": "discriminator_predictions.dense_prediction",
}

ELECTRA = ModelMap(
    model_type=ModelType.ELECTRA,
    heads_by_task={
        HFTask.DISCRIMINATOR: Parts(layers=_DISCRIMINATOR),
        HFTask.MASKED_LM: Parts(has_lm_head=True),
        HFTask.ENCODER: Parts(),
        HFTask.CLASSIFIER: Parts(
            layers={"row_head.pool": "classifier.dense", "row_head.classify": "classifier.out_proj"}
        ),
        HFTask.MULTIPLE_CHOICE: Parts(
            layers={"row_head.pool": "sequence_summary.summary", "row_head.classify": "classifier"}
        ),
        HFTask.TOKEN_CLASSIFICATION: Parts(layers={"token_classifier": "classifier"}),
        HFTask.QUESTION_ANSWERING: Parts(layers={"token_classifier": "qa_outputs"}),
    },
    lm_head_names=LMHeadNames(
        dense="generator_predictions.dense",
        norm="generator_predictions.LayerNorm",
        bias=("generator_lm_head.bias",),
        output=("generator_lm_head.weight",),
    ),
    layer_names=PerLayer(),
    projection=Projection("embeddings_project"),
    pooler_activation=Activation.GELU,
    lm_head_activations=(Activation.GELU,),
    fixed_config={**FIXED_CONFIG, "summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
    default_config={"embedding_size": 128},
)
