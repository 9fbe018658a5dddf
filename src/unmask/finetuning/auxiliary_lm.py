"""Auxiliary masked-LM loss in fine-tuning: the texts of a batch are appended a second time, masked.

GPT (Radford et al., 2018) adds a language-model loss with weight lambda to that of the task. Here it is BERT's masked
LM: 15 % of the tokens, of which 80 % are masked, 10 % replaced and 10 % kept. The rows of the task stay unmasked, and
masks are drawn anew in every epoch from the random key of the row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unmask.core.errors import RecipeError
from unmask.core.ragged import positions_in_rows, row_sums
from unmask.core.records import Bools, Cloze, Inputs, InputsAndTargets, RowBatch, Spans, TokenUnits, UnitFlag
from unmask.core.rng import Key
from unmask.data.corrupt.masking import MaskTokens
from unmask.data.tokenize.vocab import Vocab
from unmask.finetuning.epoch_batches import EpochBatches
from unmask.finetuning.methods.protocol import Method
from unmask.finetuning.parameter_roles import ParameterLocation, ParameterRole
from unmask.nets.model import EncoderWithHeads
from unmask.objectives.mlm import MLM
from unmask.train.batches.recipe_batches import RankSplit, RunPosition, StepBatch
from unmask.train.multi_head_model import MultiHeadModel

DEFAULT_LM_WEIGHT = 0.5
"""Lambda of the paper."""


@dataclass(frozen=True, slots=True)
class WithAuxiliaryLM:
    """Batches with an auxiliary masked-LM objective; dev batches are those of the task alone."""

    batches: EpochBatches
    vocab: Vocab
    lm_objective: MLM
    masking: MaskTokens = MaskTokens()

    @property
    def heads_vary(self) -> bool:
        """All batches have both objectives."""
        return self.batches.heads_vary

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        """The examples of this step, and their texts again with masks, in micro-batches of half as many examples."""
        split = replace(split, microbatch_tokens=max(1, split.microbatch_tokens // 2))
        batch, draws = self.batches.batch(position, split), self.batches.micro_batches(position, split)
        groups = self.batches.train.group_offsets
        instances = (
            self._with_masks(instance, row_keys(key, np.diff(groups)[items]))
            for instance, (items, key) in zip(batch.instances, draws, strict=True)
        )
        return replace(batch, instances=tuple(instances), objectives=(*batch.objectives, self.lm_objective))

    def stage_at(self, progress: float) -> int:
        """The stage of the task."""
        return self.batches.stage_at(progress)

    def eval_batches(self) -> tuple[StepBatch, ...]:
        """The dev batches of the task."""
        return self.batches.eval_batches()

    def _with_masks(self, instance: InputsAndTargets, key: Key) -> InputsAndTargets:
        masked = self.masking(maskable_rows(instance.inputs, self.vocab), self.vocab, key)
        (cloze,) = (target for target in masked.targets if isinstance(target, Cloze))
        inputs = concat_inputs(instance.inputs, masked.inputs)
        return InputsAndTargets(inputs, (*instance.targets, shift_positions(cloze, len(instance.inputs.ids))))


def check_auxiliary_lm(model: EncoderWithHeads, method: Method) -> None:
    """Refuse a model without an LM head, and a method that freezes the encoder."""
    if model.lm_head is None:
        raise RecipeError(
            "An auxiliary language-model loss needs a model with an LM head, and this one has none. Use the "
            "pre-trained model itself, or leave --lm-weight out."
        )
    if not any(
        method.param_lr(ParameterLocation(part, 1), 2).is_trained
        for part in ParameterRole
        if not ParameterLocation(part, 1).is_above_encoder
    ):
        raise RecipeError(
            f"An auxiliary language-model loss trains the encoder, and the method '{method.name}' freezes it. Use "
            "another method, or leave --lm-weight out."
        )


def remove_head(learner: MultiHeadModel, language: MLM) -> None:
    """Remove the head of the auxiliary objective after training."""
    del learner.heads[language.name]


def maskable_rows(inputs: Inputs, vocab: Vocab) -> RowBatch:
    """Rows in which all tokens but special ones may be masked; in an empty row its [SEP]."""
    fixed: Bools = np.isin(inputs.ids, [vocab.cls, vocab.sep, vocab.pad])
    empty = row_sums(~fixed, inputs.rows) == 0
    fixed[inputs.rows[1:][empty] - 1] = False
    units = TokenUnits(np.full(len(inputs.ids), UnitFlag.WORD, dtype=np.uint8))
    return RowBatch(inputs.ids, inputs.segment, inputs.document, fixed, units, inputs.rows)


def row_keys(key: Key, rows: np.ndarray) -> Key:
    """A random key for every row of groups with these sizes."""
    begin = np.append(0, np.cumsum(rows))
    return Key(Key(np.repeat(key.state, rows)).fold_in("beside").fold_in(positions_in_rows(begin)).state)


def concat_inputs(first: Inputs, then: Inputs) -> Inputs:
    """Two batches as one."""
    both = {name: np.concatenate([getattr(first, name), getattr(then, name)]) for name in _PER_TOKEN_FIELDS}
    return Inputs(**both, rows=np.append(first.rows, first.rows[-1] + then.rows[1:]), prefix=first.prefix)


_PER_TOKEN_FIELDS = ("ids", "segment", "document", "position")


def shift_positions(cloze: Cloze, by: int) -> Cloze:
    """The same masked positions, shifted by a number of tokens."""
    return Cloze(cloze.positions + by, cloze.answers, Spans(cloze.spans.start + by, cloze.spans.end + by))
