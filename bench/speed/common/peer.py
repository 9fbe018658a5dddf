"""The collators of `transformers`, fed with our rows and read back as our records.

What arrives: an example and the characters that each token covers. What leaves: what the collator made of it.
What never happens here: help or hindrance. Features are what a user of the collator prepares: lists, padded beforehand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

from unmask.core.records import Cloze, InputsAndTargets, Ints, RowBatch, Spans
from unmask.data.input_formats.row_plan import inputs_like
from unmask.data.tokenize.tokenizer import Tokenizer
from unmask.data.tokenize.vocab import Vocab

_IGNORED = -100


def their_tokenizer(tokenizer: Tokenizer, path: Path) -> PreTrainedTokenizerFast:
    """Ours as theirs, from the file that holds it."""
    roles = tokenizer.special_tokens
    return PreTrainedTokenizerFast(
        tokenizer_file=str(path),
        cls_token=roles.cls,
        sep_token=roles.sep,
        mask_token=roles.mask,
        pad_token=roles.pad,
        unk_token=roles.unk,
    )


class Peer:
    """`DataCollatorForLanguageModeling`, by token and by whole word."""

    def __init__(self, tokenizer: Tokenizer, path: Path) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        fast = their_tokenizer(tokenizer, path)
        self._collators = {
            whole: DataCollatorForLanguageModeling(tokenizer=fast, mlm=True, whole_word_mask=whole)
            for whole in (False, True)
        }

    def call(self, features: list[dict[str, Any]], whole: bool) -> dict[str, torch.Tensor]:
        """The collator as a data loader calls it."""
        return self._collators[whole]([_only_needed(feature, whole) for feature in features])

    def core(self, tensors: dict[str, torch.Tensor], whole: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Its masking alone, on tensors that are ready."""
        offsets = {"offset_mapping": tensors["offset_mapping"]} if whole else {}
        mask = self._collators[whole].torch_mask_tokens
        return mask(tensors["input_ids"].clone(), special_tokens_mask=tensors["special_tokens_mask"], **offsets)

    def tensors(self, features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Features as tensors."""
        return {name: torch.tensor([feature[name] for feature in features]) for name in features[0]}

    def instance(self, example: RowBatch, features: list[dict[str, Any]]) -> InputsAndTargets:
        """What the whole-word collator made of an example, in our records."""
        batch = self.call(features, whole=True)
        real = np.arange(batch["labels"].shape[1]) < example.lengths[:, None]
        labels, ids = batch["labels"].numpy()[real], batch["input_ids"].numpy()[real]
        at = np.flatnonzero(labels != _IGNORED)
        target = Cloze(at, labels[at].astype(np.int32), Spans(at, at + 1))
        return InputsAndTargets(inputs_like(example, ids.astype(np.int32)), (target,))


def row_features(example: RowBatch, length: int, offsets: Ints, vocab: Vocab) -> list[dict[str, Any]]:
    """Each row as lists, padded to `length`: the collator cannot pad an offset mapping."""
    made = []
    for first, last in zip(example.rows[:-1], example.rows[1:], strict=True):
        pad = length - (last - first)
        made.append(
            {
                "input_ids": example.ids[first:last].tolist() + [vocab.pad] * pad,
                "attention_mask": [1] * (last - first) + [0] * pad,
                "special_tokens_mask": example.protected[first:last].astype(int).tolist() + [1] * pad,
                "offset_mapping": offsets[first:last].tolist() + [[0, 0]] * pad,
            }
        )
    return made


def _only_needed(feature: dict[str, Any], whole: bool) -> dict[str, Any]:
    return feature if whole else {name: value for name, value in feature.items() if name != "offset_mapping"}
