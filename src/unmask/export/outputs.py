"""The same rows for two libraries, and what ours says about them under the names of theirs.

What arrives: rows of ids. What leaves: a flat batch for us, a padded one for them, and our numbers by their names.
What never happens here: a comparison; see `proof.py`.

Shapes: T tokens of all rows, R rows, L the longest row, D width, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

from unmask.export.architecture import Architecture, Purpose
from unmask.export.dialects import grammar_of, parts_of
from unmask.nets.block import bend
from unmask.nets.layout import Borders, from_grid, to_grid
from unmask.nets.model import Model
from unmask.nets.transformer import Tokens
from unmask.use.rows import flat

Row: TypeAlias = tuple[list[int], list[int]]
"""Ids and segments."""
Said: TypeAlias = dict[str, Tensor]
"""Numbers by the names that `transformers` has for them."""
LAST = "last_hidden_state"
T = TypeVar("T")


def batch_of(rows: Sequence[Row]) -> Tokens:
    """Rows as a flat batch."""
    segment_T = torch.tensor([number for _, segment in rows for number in segment])
    return replace(flat([ids for ids, _ in rows]), segment_T=segment_T)


def padded(tokens: Tokens, architecture: Architecture) -> Said:
    """The same batch as a grid with an attention mask; for multiple choice, as the choices of one question."""
    grids = {
        "input_ids": to_grid(tokens.ids_T, tokens.borders),
        "attention_mask": tokens.borders.real_SL().long(),
        "token_type_ids": to_grid(tokens.segment_T, tokens.borders),
    }
    return {name: grid[None] for name, grid in grids.items()} if architecture.purpose is Purpose.CHOOSER else grids


@torch.no_grad()
def our_outputs(model: Model, tokens: Tokens, architecture: Architecture) -> Said:
    """What our network says, flat: the outputs that this class of theirs has. A pre-trained one has its states, too."""
    last_TD = model.trunk(tokens).last_TD
    first_RD = last_TD[tokens.borders.offsets_S1[:-1].long()]
    match architecture.purpose:
        case Purpose.ENCODER:
            return {LAST: last_TD, **_pooled(model, first_RD, architecture)}
        case Purpose.DISCRIMINATOR:
            return {LAST: last_TD, "logits": _there(model.replaced)(last_TD)}
        case Purpose.MASKED_LM:
            return {LAST: last_TD, "logits": _there(model.tokens)(last_TD)}
        case Purpose.PRE_TRAINING:
            rows_RC = _there(model.row)(first_RD)
            return {
                LAST: last_TD,
                "prediction_logits": _there(model.tokens)(last_TD),
                grammar_of(architecture.dialect).row_logits: rows_RC,
            }
        case Purpose.CLASSIFIER | Purpose.CHOOSER:
            return {"logits": _there(model.row)(first_RD)}
        case Purpose.TAGGER:
            return {"logits": _there(model.each)(last_TD)}
        case Purpose.READER:
            start_T, end_T = _there(model.each)(last_TD).unbind(-1)
            return {"start_logits": start_T, "end_logits": end_T}


def _pooled(model: Model, first_RD: Tensor, architecture: Architecture) -> Said:
    """The first state of each row after the pooler, where a bare encoder has one."""
    if "row.pool" not in parts_of(architecture).layers:
        return {}
    return {"pooler_output": bend(_there(model.row).pool(first_RD), model.shape.pooled)}


def apart(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], borders: Borders) -> float:
    """The largest difference over all outputs of ours; NaN if there is one anywhere. Padding of theirs is left out."""
    found = [(value - _flat(theirs[name], value, borders)).abs().max() for name, value in ours.items()]
    return float(torch.stack(found).max()) if found else 0.0


def _flat(theirs: Tensor, ours: Tensor, borders: Borders) -> Tensor:
    """Their numbers in the shape of ours: a grid of tokens without its padding, or one line for each row."""
    return from_grid(theirs, borders) if len(ours) == len(borders.place_T) else theirs.reshape(ours.shape)


def _there(part: T | None) -> T:
    """A head that the architecture has."""
    assert part is not None, "the network has the heads of its architecture"
    return part
