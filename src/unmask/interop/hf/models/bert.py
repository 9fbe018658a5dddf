"""The model maps of BERT (Devlin et al., 2018) and ERNIE 1.0 (Sun et al., 2019).

ERNIE has BERT's names under another prefix. The task embedding of ERNIE 2.0 is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from unmask.config.model_type import ModelType
from unmask.interop.hf.layer_names import PerLayer
from unmask.interop.hf.model_map import HFTask, LMHeadNames, ModelMap, Parts

LM_HEAD_NAMES = LMHeadNames(
    dense="cls.predictions.transform.dense",
    norm="cls.predictions.transform.LayerNorm",
    bias=("cls.predictions.bias", "cls.predictions.decoder.bias"),
    output=("cls.predictions.decoder.weight",),
)
FIXED_CONFIG = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}


def heads_by_task(model_type: ModelType) -> Mapping[HFTask, Parts]:
    """The heads of each class."""
    pool = {"row_head.pool": f"{model_type.value}.pooler.dense"}
    classified = Parts(layers={**pool, "row_head.classify": "classifier"})
    return {
        HFTask.PRE_TRAINING: Parts(has_lm_head=True, layers={**pool, "row_head.classify": "cls.seq_relationship"}),
        HFTask.MASKED_LM: Parts(has_lm_head=True),
        HFTask.ENCODER: Parts(layers=pool),
        HFTask.CLASSIFIER: classified,
        HFTask.MULTIPLE_CHOICE: classified,
        HFTask.TOKEN_CLASSIFICATION: Parts(layers={"token_classifier": "classifier"}),
        HFTask.QUESTION_ANSWERING: Parts(layers={"token_classifier": "qa_outputs"}),
    }


BERT = ModelMap(
    model_type=ModelType.BERT,
    heads_by_task=heads_by_task(ModelType.BERT),
    lm_head_names=LM_HEAD_NAMES,
    layer_names=PerLayer(),
    fixed_config=FIXED_CONFIG,
)

ERNIE = ModelMap(
    model_type=ModelType.ERNIE,
    heads_by_task=heads_by_task(ModelType.ERNIE),
    lm_head_names=LM_HEAD_NAMES,
    layer_names=PerLayer(),
    fixed_config={**FIXED_CONFIG, "use_task_id": False},
)
