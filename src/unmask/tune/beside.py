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

from unmask.corrupt.mask_out import MaskOut
from unmask.errors import RecipeError
from unmask.keys import Key
from unmask.nets.model import Model
from unmask.objectives.mlm import MLM
from unmask.ragged import row_sums, within
from unmask.records import Bools, Cloze, Example, Flag, Inputs, Instance, Spans, UnitMap
from unmask.tokenize.vocab import Vocab
from unmask.train.course import Crew, Lesson, Moment
from unmask.train.learner import Learner
from unmask.tune.course import Labelled
from unmask.tune.places import Part, Place
from unmask.tune.policy import Policy

USUAL_LAMBDA = 0.5
"""What the loss of the language model counts, as in the paper."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A course with a language model beside it; implements `Course`. It is judged by the task alone."""

    course: Labelled
    vocab: Vocab
    language: MLM
    mask: MaskOut = MaskOut()

    @property
    def mixed(self) -> bool:
        """Every lesson asks for both."""
        return self.course.mixed

    def lesson(self, moment: Moment, crew: Crew) -> Lesson:
        """The questions of this step, and their texts again with masks. Twice as many rows take twice the room."""
        crew = replace(crew, micro=max(1, crew.micro // 2))
        lesson, draws = self.course.lesson(moment, crew), self.course.draws(moment, crew)
        learned = self.course.learned
        shown = (
            self._with_masks(instance, row_keys(key, np.diff(learned.begin)[items]))
            for instance, (items, key) in zip(lesson.instances, draws, strict=True)
        )
        return replace(lesson, instances=tuple(shown), objectives=(*lesson.objectives, self.language))

    def stage_at(self, share: float) -> int:
        """Those of the task."""
        return self.course.stage_at(share)

    def trial(self) -> tuple[Lesson, ...]:
        """The questions alone."""
        return self.course.trial()

    def _with_masks(self, instance: Instance, key: Key) -> Instance:
        masked = self.mask(plain(instance.inputs, self.vocab), self.vocab, key)
        (cloze,) = (target for target in masked.targets if isinstance(target, Cloze))
        inputs = behind(instance.inputs, masked.inputs)
        return Instance(inputs, (*instance.targets, moved(cloze, len(instance.inputs.ids))))


def check_beside(model: Model, policy: Policy) -> None:
    """Refuse a network that never learned to say tokens, and a policy that leaves the network as it is."""
    if model.tokens is None:
        raise RecipeError(
            "A language model beside the task needs a network with a head for tokens, and this one has none: it was "
            "saved without what it was pre-trained with. Take the pre-trained network itself, or leave --beside out."
        )
    if not any(policy.pace(Place(part, 1), 2).moves for part in Part if not Place(part, 1).above):
        raise RecipeError(
            f"A language model beside the task moves the network, and the policy '{policy.name}' keeps it still. Take "
            "another policy, or leave --beside out."
        )


def take_off(learner: Learner, language: MLM) -> None:
    """Remove the head of the language model, which only helped to learn."""
    del learner.heads[language.name]


def plain(inputs: Inputs, vocab: Vocab) -> Example:
    """Rows in which any ordinary token may be masked; in a row without any, what ends it, so that none is left out."""
    fixed: Bools = np.isin(inputs.ids, [vocab.cls, vocab.sep, vocab.pad])
    empty = row_sums(~fixed, inputs.rows) == 0
    fixed[inputs.rows[1:][empty] - 1] = False
    units = UnitMap(np.full(len(inputs.ids), Flag.WORD, dtype=np.uint8))
    return Example(inputs.ids, inputs.segment, inputs.document, fixed, units, inputs.rows)


def row_keys(key: Key, rows: np.ndarray) -> Key:
    """A key for every row of items that have this many."""
    begin = np.append(0, np.cumsum(rows))
    return Key(Key(np.repeat(key.state, rows)).fold("beside").fold(within(begin)).state)


def behind(first: Inputs, then: Inputs) -> Inputs:
    """Two batches as one."""
    both = {name: np.concatenate([getattr(first, name), getattr(then, name)]) for name in _PER_TOKEN}
    return Inputs(**both, rows=np.append(first.rows, first.rows[-1] + then.rows[1:]), prefix=first.prefix)


_PER_TOKEN = ("ids", "segment", "document", "position")


def moved(cloze: Cloze, by: int) -> Cloze:
    """The same questions about rows that stand further behind."""
    return Cloze(cloze.positions + by, cloze.answers, Spans(cloze.spans.start + by, cloze.spans.end + by))
