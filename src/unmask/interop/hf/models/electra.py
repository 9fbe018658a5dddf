"""ELECTRA in the names of `transformers` (Clark et al., 2020).

Two networks: the discriminator is `ElectraForPreTraining`, the generator `ElectraForMaskedLM`. There is no pooler; a
tuned class brings its own, and it bends with GELU. The generator's head for tokens always bends with exact GELU.

What arrives: nothing. What leaves: the grammar.
What never happens here: what all dialects do alike; see `weight_names.py` and `settings.py`.
"""

from __future__ import annotations

from unmask.config.model_type import ModelType
from unmask.config.network import Activation
from unmask.interop.hf.architecture import HFTask
from unmask.interop.hf.layer_names import PerLayer
from unmask.interop.hf.model_map import LMHeadNames, ModelMap, Parts, Projection
from unmask.interop.hf.models.bert import FIXED_CONFIG

_REPLACED = {
    "discriminator_head.dense": "discriminator_predictions.dense",
    "discriminator_head.classify": "discriminator_predictions.dense_prediction",
}

ELECTRA = ModelMap(
    model_type=ModelType.ELECTRA,
    heads_by_task={
        HFTask.DISCRIMINATOR: Parts(layers=_REPLACED),
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
