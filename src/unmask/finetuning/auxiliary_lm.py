"""A language model beside the task: the texts of a batch are shown a second time, masked (Radford et al., 2018).

What arrives: the course of a task. What leaves: the same lessons with masked rows behind those of the task, and a
second objective for them: the loss is that of the task plus lambda times that of the masked tokens.
What never happens here: other text than that of the task, a mask in the rows that the task is asked about, or a mask
twice. Masks are drawn anew at every visit, from the address of the row.

GPT-1 predicts the next token. What a masked language model has learned to say is masked tokens, so these are asked for
here: 15 % of them; of these 80 % are hidden, 10 % exchanged and 10 % shown as they are.
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
from unmask.train.batches.protocol import RankSplit, RunPosition, StepBatch
from unmask.train.multi_head_model import MultiHeadModel

DEFAULT_LM_WEIGHT = 0.5
"""What the loss of the language model counts, as in the paper."""


@dataclass(frozen=True, slots=True)
class WithAuxiliaryLM:
    """A course with a language model beside it; implements `Course`. It is judged by the task alone."""

    batches: EpochBatches
    vocab: Vocab
    lm_objective: MLM
    masking: MaskTokens = MaskTokens()

    @property
    def heads_vary(self) -> bool:
        """Every lesson asks for both."""
        return self.batches.heads_vary

    def batch(self, position: RunPosition, split: RankSplit) -> StepBatch:
        """The questions of this step, and their texts again with masks. Twice as many rows take twice the room."""
        split = replace(split, microbatch_tokens=max(1, split.microbatch_tokens // 2))
        lesson, draws = self.batches.batch(position, split), self.batches.micro_batches(position, split)
        learned = self.batches.train
        shown = (
            self._with_masks(instance, row_keys(key, np.diff(learned.group_offsets)[items]))
            for instance, (items, key) in zip(lesson.instances, draws, strict=True)
        )
        return replace(lesson, instances=tuple(shown), objectives=(*lesson.objectives, self.lm_objective))

    def stage_at(self, progress: float) -> int:
        """Those of the task."""
        return self.batches.stage_at(progress)

    def eval_batches(self) -> tuple[StepBatch, ...]:
        """The questions alone."""
        return self.batches.eval_batches()

    def _with_masks(self, instance: InputsAndTargets, key: Key) -> InputsAndTargets:
        masked = self.masking(maskable_rows(instance.inputs, self.vocab), self.vocab, key)
        (cloze,) = (target for target in masked.targets if isinstance(target, Cloze))
        inputs = concat_inputs(instance.inputs, masked.inputs)
        return InputsAndTargets(inputs, (*instance.targets, shift_positions(cloze, len(instance.inputs.ids))))


def check_auxiliary_lm(model: EncoderWithHeads, policy: Method) -> None:
    """Refuse a network that never learned to say tokens, and a policy that leaves the network as it is."""
    if model.lm_head is None:
        raise RecipeError(
            "A language model beside the task needs a network with a head for tokens, and this one has none: it was "
            "saved without what it was pre-trained with. Take the pre-trained network itself, or leave --lm-weight out."
        )
    if not any(
        policy.param_lr(ParameterLocation(part, 1), 2).is_trained
        for part in ParameterRole
        if not ParameterLocation(part, 1).is_above_encoder
    ):
        raise RecipeError(
            f"A language model beside the task moves the network, and the policy '{policy.name}' keeps it still. Take "
            "another policy, or leave --lm-weight out."
        )


def remove_head(learner: MultiHeadModel, language: MLM) -> None:
    """Remove the head of the language model, which only helped to learn."""
    del learner.heads[language.name]


def maskable_rows(inputs: Inputs, vocab: Vocab) -> RowBatch:
    """Rows in which any ordinary token may be masked; in a row without any, what ends it, so that none is left out."""
    fixed: Bools = np.isin(inputs.ids, [vocab.cls, vocab.sep, vocab.pad])
    empty = row_sums(~fixed, inputs.rows) == 0
    fixed[inputs.rows[1:][empty] - 1] = False
    units = TokenUnits(np.full(len(inputs.ids), UnitFlag.WORD, dtype=np.uint8))
    return RowBatch(inputs.ids, inputs.segment, inputs.document, fixed, units, inputs.rows)


def row_keys(key: Key, rows: np.ndarray) -> Key:
    """A key for every row of items that have this many."""
    begin = np.append(0, np.cumsum(rows))
    return Key(Key(np.repeat(key.state, rows)).fold_in("beside").fold_in(positions_in_rows(begin)).state)


def concat_inputs(first: Inputs, then: Inputs) -> Inputs:
    """Two batches as one."""
    both = {name: np.concatenate([getattr(first, name), getattr(then, name)]) for name in _PER_TOKEN_FIELDS}
    return Inputs(**both, rows=np.append(first.rows, first.rows[-1] + then.rows[1:]), prefix=first.prefix)


_PER_TOKEN_FIELDS = ("ids", "segment", "document", "position")


def shift_positions(cloze: Cloze, by: int) -> Cloze:
    """The same questions about rows that stand further behind."""
    return Cloze(cloze.positions + by, cloze.answers, Spans(cloze.spans.start + by, cloze.spans.end + by))
