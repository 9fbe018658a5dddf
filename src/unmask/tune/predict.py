"""What a tuned network says about rows.

What arrives: a learner and encoded rows. What leaves: `Said`, one answer a row, in the order of the rows.
What never happens here: a draw, or a gradient. The same weights say the same about the same rows.

Shapes: N rows, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.nets.batch import collate
from unmask.records import Amounts, Floats, Instance, Ints
from unmask.train.learner import Learner
from unmask.train.trial import still
from unmask.tune.course import by_length
from unmask.tune.encode import Encoded
from unmask.tune.row_task import Kind, RowTask
from unmask.tune.start import row_head


@dataclass(frozen=True, slots=True)
class Said:
    """The answers to a task."""

    task: RowTask
    scores_NC: Floats
    """As they leave the head: logits of the classes, or the one number."""

    def __len__(self) -> int:
        return len(self.scores_NC)

    @property
    def answers(self) -> tuple[str, ...] | tuple[float, ...]:
        """The likeliest label of each row, or its number."""
        if self.task.kind is Kind.REGRESS:
            return tuple(self.amounts.tolist())
        return tuple(self.task.labels[best] for best in self.classes.tolist())

    @property
    def classes(self) -> Ints:
        """The number of the likeliest class of each row."""
        best: Ints = self.scores_NC.argmax(axis=1)
        return best

    @property
    def amounts(self) -> Amounts:
        """The number that is said about each row, in the units of the task file."""
        return self.scores_NC[:, 0].astype(np.float64) * self.task.spread + self.task.mean

    @property
    def probabilities_NC(self) -> Amounts:
        """How sure the network is of each class."""
        scores = self.scores_NC.astype(np.float64)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: Amounts = weights / weights.sum(axis=1, keepdims=True)
        return shares


def answer(learner: Learner, task: RowTask, rows: Encoded) -> Said:
    """Run all rows through the network, those of like length together."""
    head, device = row_head(learner, task), next(learner.parameters()).device
    scores_NC = np.zeros((len(rows), head.classify.out_features), dtype=np.float32)
    with still(learner):
        for some in by_length(rows):
            batch = collate(Instance(rows.take(some), ()), device)
            states = learner.trunk(batch.tokens)
            scores_NC[some] = head(states.last_TD[batch.first_B]).float().cpu().numpy()
    return Said(task, scores_NC)
