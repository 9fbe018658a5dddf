"""ERNIE 1.0 in the names of `transformers` (Sun et al., 2019): BERT's under another prefix.

What arrives: nothing. What leaves: the grammar.
What never happens here: the task embedding of ERNIE 2.0. Settings that ask for it are refused.
"""

from __future__ import annotations

from unmask.config.model_type import ModelType
from unmask.interop.hf.layer_names import PerLayer
from unmask.interop.hf.model_map import ModelMap
from unmask.interop.hf.models.bert import FIXED_CONFIG, LM_HEAD_NAMES, heads_by_task

ERNIE = ModelMap(
    model_type=ModelType.ERNIE,
    heads_by_task=heads_by_task(ModelType.ERNIE),
    lm_head_names=LM_HEAD_NAMES,
    layer_names=PerLayer(),
    fixed_config={**FIXED_CONFIG, "use_task_id": False},
)
