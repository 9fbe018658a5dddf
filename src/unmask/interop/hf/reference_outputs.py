"""Inputs for transformers and unmask from the same rows, and our outputs under the names of transformers.

Shapes: T tokens of all rows, R rows, L the longest row, D width, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

from unmask.inference.pack_texts import pack
from unmask.interop.hf.lookup import model_map, parts_of
from unmask.interop.hf.model_map import Architecture, HFTask
from unmask.nets.batch.packed_sequences import PackedSequences, pad, unpad
from unmask.nets.encoder import TokenInputs
from unmask.nets.layers.block import activate
from unmask.nets.model import EncoderWithHeads

Row: TypeAlias = tuple[list[int], list[int]]
"""Ids and segments."""
NamedOutputs: TypeAlias = dict[str, Tensor]
"""Outputs by their names in `transformers`."""
LAST_HIDDEN_STATE = "last_hidden_state"
T = TypeVar("T")


def pack_rows(rows: Sequence[Row]) -> TokenInputs:
    """Rows as one packed batch."""
    segment_T = torch.tensor([number for _, segment in rows for number in segment])
    return replace(pack([ids for ids, _ in rows]), segment_T=segment_T)


def to_padded_inputs(tokens: TokenInputs, architecture: Architecture) -> NamedOutputs:
    """The batch padded, with an attention mask; for multiple choice, as the choices of one question."""
    grids = {
        "input_ids": pad(tokens.ids_T, tokens.sequences),
        "attention_mask": tokens.sequences.valid_SL().long(),
        "token_type_ids": pad(tokens.segment_T, tokens.sequences),
    }
    return {name: grid[None] for name, grid in grids.items()} if architecture.task is HFTask.MULTIPLE_CHOICE else grids


@torch.no_grad()
def model_outputs(model: EncoderWithHeads, tokens: TokenInputs, architecture: Architecture) -> NamedOutputs:
    """The packed outputs of our network that this class has, and the last hidden states of a pre-trained one."""
    last_TD = model.network(tokens).last_TD
    first_RD = last_TD[tokens.sequences.cu_seqlens_S1[:-1].long()]
    match architecture.task:
        case HFTask.ENCODER:
            return {LAST_HIDDEN_STATE: last_TD, **_pooled(model, first_RD, architecture)}
        case HFTask.DISCRIMINATOR:
            return {LAST_HIDDEN_STATE: last_TD, "logits": _require(model.discriminator_head)(last_TD)}
        case HFTask.MASKED_LM:
            return {LAST_HIDDEN_STATE: last_TD, "logits": _require(model.lm_head)(last_TD)}
        case HFTask.PRE_TRAINING:
            rows_RC = _require(model.row_head)(first_RD)
            return {
                LAST_HIDDEN_STATE: last_TD,
                "prediction_logits": _require(model.lm_head)(last_TD),
                model_map(architecture.model_type).row_logits: rows_RC,
            }
        case HFTask.CLASSIFIER | HFTask.MULTIPLE_CHOICE:
            return {"logits": _require(model.row_head)(first_RD)}
        case HFTask.TOKEN_CLASSIFICATION:
            return {"logits": _require(model.token_classifier)(last_TD)}
        case HFTask.QUESTION_ANSWERING:
            start_T, end_T = _require(model.token_classifier)(last_TD).unbind(-1)
            return {"start_logits": start_T, "end_logits": end_T}


def _pooled(model: EncoderWithHeads, first_RD: Tensor, architecture: Architecture) -> NamedOutputs:
    """The pooled first state of each row, if the bare encoder has a pooler."""
    if "row_head.pool" not in parts_of(architecture).layers:
        return {}
    return {"pooler_output": activate(_require(model.row_head).pool(first_RD), model.config.pooler_activation)}


def max_difference(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], borders: PackedSequences) -> float:
    """The largest difference over our outputs, NaN if any is NaN. Padding is ignored."""
    found = [(value - _flat(theirs[name], value, borders)).abs().max() for name, value in ours.items()]
    return float(torch.stack(found).max()) if found else 0.0


def _flat(theirs: Tensor, ours: Tensor, borders: PackedSequences) -> Tensor:
    """Their output in our shape: without padding, or one line per row."""
    return unpad(theirs, borders) if len(ours) == len(borders.padded_index_T) else theirs.reshape(ours.shape)


def _require(part: T | None) -> T:
    """The head, which the architecture has."""
    assert part is not None, "the network has the heads of its architecture"
    return part
